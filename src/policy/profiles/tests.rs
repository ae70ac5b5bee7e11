use super::*;
use crate::policy::limit::Limit;
use crate::policy::profile::Given;
use rstest::rstest;

fn load(text: &str) -> Result<Profiles, InvalidProfileError> {
    let tables: BTreeMap<String, ProfileTable> = toml::from_str(text).unwrap();
    Profiles::load(&tables, &BTreeMap::new())
}

#[test]
fn every_built_in_profile_reads_back_from_its_table() {
    let bases: BTreeMap<_, _> = built_in()
        .into_iter()
        .map(|p| (p.name.clone(), p))
        .collect();
    for profile in built_in() {
        let text = toml::to_string(&ProfileTable::of(&profile)).unwrap();
        let table: ProfileTable = toml::from_str(&text).unwrap();
        assert_eq!(table, ProfileTable::of(&profile), "{text}");
        let again = table.resolve("copy", &bases).unwrap();
        let renamed = Profile {
            name: "copy".to_owned(),
            ..profile
        };
        assert_eq!(again, renamed, "{text}");
    }
}

#[test]
fn an_own_profile_overrides_any_field_of_its_base() {
    let profiles = load(
        r#"
        [mine]
        base = "claude-code"
        inline_limit = 40000
        turn_budget = 90000
        on_save_failure = "head_and_tail"
        means = ["mcp:artifact_read", "cli"]
        tools.bash = 10000
        tools.search = { limit = "never", measure = "bytes" }
        operator.grep = 1
        [short]
        base = "dsh"
        inline_limit = 1000
        "#,
    )
    .unwrap();
    let mine = profiles.get("mine").unwrap();
    let limit = |tool| mine.limit_of(tool, &Given::default()).limit;
    assert_eq!(limit("bash"), Limit::AtMost(10_000));
    assert_eq!(limit("Bash"), Limit::AtMost(30_000));
    assert_eq!(limit("grep"), Limit::AtMost(1));
    assert_eq!(limit("search"), Limit::Never);
    assert_eq!(limit("other"), Limit::AtMost(40_000));
    assert!(mine.never_externalizes("Read") && !mine.never_externalizes("other"));
    assert_eq!(mine.turn_budget(&Given::default()), Limit::AtMost(90_000));
    assert_eq!(profiles.get("short").unwrap().max_replacement_bytes, 1_000);
    assert_eq!(*profiles.get("dsh").unwrap(), dsh());
}

#[rstest]
#[case::zero("inline_limit = 0", "inline_limit")]
#[case::too_much("inline_limit = 2000001", "inline_limit")]
#[case::zero_of_a_tool("tools.bash = 0", "tools.bash")]
#[case::zero_of_an_operator("operator.x = 0", "operator.x")]
#[case::unknown_base("base = \"none\"", "base")]
#[case::no_budget("turn_budget = 0", "turn_budget")]
#[case::budget_below_a_result("turn_budget = 20000", "turn_budget")]
#[case::floor_above_the_budget("turn_result_floor = 200000", "turn_result_floor")]
#[case::no_reply("max_reply_bytes = 0", "max_reply_bytes")]
#[case::no_replacement("max_replacement_bytes = 0", "max_replacement_bytes")]
#[case::unknown_means("means = [\"ftp\"]", "means")]
#[case::a_form_without_its_preview("form = \"tagged\"", "preview")]
#[case::no_ceiling("server_ceiling = 0", "server_ceiling")]
#[case::shares_that_contradict(
    "scaling = { chars_per_token = 4, result_percent = 30, turn_percent = 15, result_floor = 1, turn_floor = 1 }",
    "scaling.turn_percent"
)]
#[case::bounds_of_nothing(
    "text_bounds = { max_bytes = 0, max_lines = 1, max_line_chars = 1, keep = \"ends\" }",
    "text_bounds"
)]
fn what_cannot_be_meant_is_refused_with_its_key(#[case] line: &str, #[case] key: &str) {
    let error = load(&format!("[mine]\n{line}\n")).unwrap_err();
    assert_eq!(error.key, format!("profiles.mine.{key}"), "{error}");
    assert!(!error.rule.is_empty());
}

#[rstest]
#[case("inline_limit = -1")]
#[case("inline_limit = 1.5")]
#[case("inline_limit = \"12\"")]
#[case("tools.bash = -20")]
#[case("max_reply_bytes = -5")]
#[case("turn_result_floor = 0.5")]
#[case("colour = 1")]
#[case("preview = { kind = \"head\", length = -1, measure = \"bytes\", line_end = \"ignored\" }")]
fn numbers_that_are_none_do_not_parse(#[case] line: &str) {
    let read = toml::from_str::<BTreeMap<String, ProfileTable>>(&format!("[mine]\n{line}\n"));
    assert!(read.is_err(), "{line}");
}

#[rstest]
#[case("[Mine]\n")]
#[case("[-mine]\n")]
fn a_name_is_a_new_word(#[case] text: &str) {
    assert!(load(text).unwrap_err().key.ends_with(".name"));
}

#[test]
fn a_built_in_profile_may_be_changed_under_its_own_name() {
    let profiles = load("[hermes]\ninline_limit = 5000\n").unwrap();
    let changed = profiles.get("hermes").unwrap();
    assert_eq!(
        changed.limit_of("x", &Given::default()).limit,
        Limit::AtMost(5_000)
    );
    assert_eq!(changed.form, hermes().form);
}

#[test]
fn limits_follow_a_known_window_between_floor_and_default() {
    let profile = hermes();
    let limits = |tokens| {
        let given = Given {
            context_tokens: tokens,
            ..Given::default()
        };
        (
            profile.limit_of("x", &given).limit,
            profile.turn_budget(&given),
        )
    };
    let full = (Limit::AtMost(100_000), Limit::AtMost(200_000));
    assert_eq!(limits(None), full);
    assert_eq!(limits(Some(0)), full);
    assert_eq!(limits(Some(u64::MAX)), full);
    assert_eq!(
        limits(Some(1)),
        (Limit::AtMost(8_000), Limit::AtMost(16_000))
    );
    let scaled = (Limit::AtMost(78_643), Limit::AtMost(157_286));
    assert_eq!(limits(Some(131_072)), scaled);
}
