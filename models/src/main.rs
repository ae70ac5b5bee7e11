use spillbox_models::{check, journal};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
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
