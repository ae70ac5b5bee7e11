//! `grep` and `outline`: the same on a store and through a service.

use rstest::rstest;
use serde_json::Value;

use crate::support::program::{Place, outcome, text};

const BODY: &[u8] = b"ok\nwarning: odd\nerror: a (b) -x\nlast\n";

fn locator(place: &Place) -> String {
    let receipt = place.put("out.log", BODY);
    receipt["locator"].as_str().unwrap().to_owned()
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
fn grep_prints_rows_and_says_by_its_status_whether_there_were_any(#[case] place: Place) {
    let locator = locator(&place);
    let grep = |arguments: &[&str]| {
        let arguments = [&["grep", &locator], arguments].concat();
        let (status, output, errors) = outcome(place.command(&arguments));
        (status, text(output), errors)
    };
    assert_eq!(
        grep(&["a (b)"]),
        (0, "3:error: a (b) -x\n".to_owned(), String::new())
    );
    assert_eq!(grep(&["-x"]).1, "3:error: a (b) -x\n");
    assert_eq!(grep(&["-E", "^(o|l)", "-i"]).1, "1:ok\n4:last\n");
    assert_eq!(
        grep(&["ERROR", "-i", "-C", "1"]).1,
        "2-warning: odd\n3:error: a (b) -x\n4-last\n"
    );
    assert_eq!(grep(&["nothing"]), (1, String::new(), String::new()));
    let (status, output, errors) = grep(&["a(", "--regex"]);
    assert_eq!((status, output.as_str()), (2, ""));
    assert!(
        errors.contains("invalid_pattern") && errors.contains("unclosed group"),
        "{errors}"
    );
    let (_, _, note) = grep(&["o", "--limit", "1"]);
    let cursor = note.trim_end().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(
        grep(&["o", "--limit", "1", "--cursor", &cursor]).1,
        "2:warning: odd\n"
    );
    let page: Value = serde_json::from_str(&grep(&["last", "--json"]).1).unwrap();
    assert_eq!(page["matches"][0]["line_number"], 4);
    assert_eq!(grep(&["nothing", "--json"]).0, 1);
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
fn outline_prints_what_stands_out(#[case] place: Place) {
    let locator = locator(&place);
    assert_eq!(
        text(place.ok(&["outline", &locator])),
        "4 lines, 37 bytes\nerrors: 1\n  3: error: a (b) -x\nwarnings: 1\n  2: warning: odd\n"
    );
    let outline: Value =
        serde_json::from_slice(&place.ok(&["outline", &locator, "--json"])).unwrap();
    assert_eq!(outline["errors"]["count"], 1);
}
