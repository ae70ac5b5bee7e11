use super::*;

#[test]
fn base32_round_trips_and_keeps_the_order() {
    let values = [0, 1, 31, 32, u128::from(u64::MAX), u128::MAX - 1, u128::MAX];
    let texts: Vec<_> = values.iter().map(|v| encode_base32(*v)).collect();
    for (text, value) in texts.iter().zip(values) {
        assert_eq!(text.len(), 26);
        assert_eq!(decode_base32(text), Some(value));
    }
    assert!(texts.is_sorted());
    for bad in [
        "",
        "8zzzzzzzzzzzzzzzzzzzzzzzzz",
        "0000000000000000000000000u",
        "0000000000000000000000000A",
        "é00000000000000000000000é",
    ] {
        assert_eq!(decode_base32(bad), None, "{bad}");
    }
}

#[test]
fn later_artifacts_list_first_and_milliseconds_never_repeat() {
    let ids = SeededIds::new(7);
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let made: Vec<_> = (0..1000).map(|_| ids.artifact_id(now)).collect();
    assert!(made.windows(2).all(|pair| pair[1] < pair[0]));
    let earlier = ids.artifact_id(Timestamp::from_second(1_700_000_000).unwrap());
    assert!(
        earlier < made[999],
        "a clock that steps back does not reorder ids"
    );
}

#[test]
fn artifact_ids_survive_every_date() {
    let dates = [
        0,
        26 * (1 << 36) - 1,
        26 * (1 << 36),
        2_147_483_648_000,
        253_402_300_800_000,
        u64::MAX,
    ];
    for millis in dates {
        let id = ArtifactId::new(millis, [0xff; 10]);
        assert_eq!(id.to_string().parse(), Ok(id));
    }
}

#[test]
fn session_keys_do_not_mix_tenant_and_session() {
    let key = |tenant: &str, session: &str| {
        SessionKey::derive(&tenant.parse().unwrap(), &session.parse().unwrap())
    };
    assert_ne!(key("ab", "c"), key("a", "bc"));
    assert_ne!(key("a", "s"), key("b", "s"));
    assert_eq!(key("a", "é/../\0"), key("a", "é/../\0"));
}

#[test]
fn names_are_checked() {
    for good in ["a", "0", "a-b", "default", &"a".repeat(32)] {
        assert!(good.parse::<Tenant>().is_ok(), "{good}");
    }
    for bad in ["", "-a", "A", "a_b", "a.b", "é", "a/b", &"a".repeat(33)] {
        assert!(bad.parse::<Tenant>().is_err(), "{bad}");
    }
    for good in ["s", "run 7", "a/b", "...", "é", "a\0b", &"x".repeat(512)] {
        assert!(good.parse::<SessionId>().is_ok(), "{good}");
    }
    for bad in ["", ".", "..", &"x".repeat(513)] {
        assert!(bad.parse::<SessionId>().is_err(), "{bad}");
    }
    assert!("x".repeat(4097).parse::<CallId>().is_err());
    assert!("".parse::<CallId>().is_err());
}

#[test]
fn locator_words_are_exact() {
    let text = "00000000000000000000000001.00000000000000000000000002";
    assert_eq!(text.parse::<ArtifactRef>().unwrap().to_string(), text);
    for bad in [
        "",
        ".",
        "a.b",
        &text[1..],
        &format!("{text}0"),
        &text.replace('.', "/"),
    ] {
        assert!(bad.parse::<ArtifactRef>().is_err(), "{bad}");
    }
}
