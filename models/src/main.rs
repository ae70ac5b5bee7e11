use spillbox_models::{check, journal, save};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args[0] == "save" {
        let mut m = save::scenario::by_name(&args[1]).unwrap();
        if let Some(r) = args.get(2) {
            m.without = save::Rule::ALL.iter().copied().find(|x| format!("{x:?}") == *r);
            assert!(m.without.is_some());
            match check::shortest_violation(m) {
                None => println!("{args:?}: HOLDS"),
                Some(c) => println!("{args:?}: {} steps {:?}\n  {}", c.steps, c.violated, c.trace.join(" ")),
            }
        } else {
            let r = check::explore(m.clone());
            println!("{}: {}", args[1], r);
            if !r.violated.is_empty() { let c = check::shortest_violation(m).unwrap(); println!("  {} {}", c.steps, c.trace.join(" ")); println!("{}", c.last_state); }
        }
        return;
    }
    let mut m = journal::scenario::by_name(&args[0]).unwrap();
    if let Some(r) = args.get(1) {
        m.without = journal::Rule::ALL.iter().copied().find(|x| format!("{x:?}") == *r);
        assert!(m.without.is_some());
        match check::shortest_violation(m) {
            None => println!("{args:?}: HOLDS"),
            Some(c) => println!("{args:?}: {} steps {:?}\n  {}", c.steps, c.violated, c.trace.join(" ")),
        }
    } else { println!("{}: {}", args[0], check::explore(m)); }
}
