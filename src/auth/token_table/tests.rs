use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn entry(token: &str) -> TokenEntry {
    TokenEntry {
        sha256: Sha256Digest::of(token.as_bytes()).to_hex(),
        tenant: "acme".to_owned(),
        scopes: vec!["read".to_owned(), "save".to_owned()],
        name: None,
    }
}

fn refusal(entries: &[TokenEntry]) -> TokenEntryError {
    TokenTable::new(entries).unwrap_err()
}

#[test]
fn a_token_is_found_with_its_tenant_scopes_and_name() {
    let mut second = entry("b");
    second.name = Some("ci".to_owned());
    second.tenant = "other".to_owned();
    second.scopes = vec!["admin".to_owned()];
    let table = TokenTable::new(&[entry("a"), second]).unwrap();
    let found = table.find(&Sha256Digest::of(b"b")).unwrap();
    assert_eq!(found.id.as_str(), "ci");
    assert_eq!(found.tenant.as_str(), "other");
    assert!(found.may(Scope::Admin) && !found.may(Scope::Read));
    assert_eq!(found.credential, Credential::ConfiguredToken);
    let unnamed = table.find(&Sha256Digest::of(b"a")).unwrap();
    assert!(unnamed.id.as_str().starts_with("token-"));
    assert!(unnamed.may(Scope::Save) && !unnamed.may(Scope::Lease));
    assert_eq!(table.find(&Sha256Digest::of(b"c")), None);
}

#[rstest]
#[case::upper_hex(|e: &mut TokenEntry| e.sha256 = e.sha256.to_uppercase(), "sha256", "lower-case")]
#[case::short(|e: &mut TokenEntry| e.sha256.truncate(63), "sha256", "64")]
#[case::long(|e: &mut TokenEntry| e.sha256.push('0'), "sha256", "64")]
#[case::prefixed(|e: &mut TokenEntry| e.sha256 = format!("sha256:{}", e.sha256), "sha256", "64")]
#[case::the_token_itself(|e: &mut TokenEntry| e.sha256 = "sbx_secret".to_owned(), "sha256", "token hash")]
#[case::no_tenant(|e: &mut TokenEntry| e.tenant.clear(), "tenant", "[a-z0-9]")]
#[case::bad_tenant(|e: &mut TokenEntry| e.tenant = "../x".to_owned(), "tenant", "[a-z0-9]")]
#[case::no_scopes(|e: &mut TokenEntry| e.scopes.clear(), "scopes", "no scope")]
#[case::unknown_scope(|e: &mut TokenEntry| e.scopes.push("write".to_owned()), "scopes", "`write`")]
#[case::scope_twice(|e: &mut TokenEntry| e.scopes.push("read".to_owned()), "scopes", "twice")]
#[case::bad_name(|e: &mut TokenEntry| e.name = Some("a b".to_owned()), "name", "1 to 64")]
#[case::our_name(|e: &mut TokenEntry| e.name = Some("anonymous".to_owned()), "name", "anonymous")]
fn a_malformed_entry_is_named_by_its_key(
    #[case] spoil: fn(&mut TokenEntry),
    #[case] field: &'static str,
    #[case] part: &str,
) {
    let mut bad = entry("c");
    spoil(&mut bad);
    let error = refusal(&[entry("a"), entry("b"), bad]);
    assert_eq!((error.index, error.field), (2, Some(field)));
    let text = error.to_string();
    assert!(text.starts_with(&format!("tokens[2].{field}: ")), "{text}");
    assert!(text.contains(part), "{text}");
    assert!(!text.contains("sbx_secret"), "{text}");
}

#[test]
fn the_same_token_twice_is_refused_even_with_equal_rights() {
    let error = refusal(&[entry("a"), entry("b"), entry("a")]);
    assert_eq!(
        error.to_string(),
        "tokens[2].sha256: the same token as tokens[0]"
    );
}

#[test]
fn a_name_may_move_to_a_new_token_but_not_to_another_tenant() {
    let named = |token: &str, tenant: &str| {
        let mut entry = entry(token);
        entry.name = Some("ci".to_owned());
        entry.tenant = tenant.to_owned();
        entry
    };
    assert!(TokenTable::new(&[named("old", "acme"), named("new", "acme")]).is_ok());
    let error = refusal(&[named("old", "acme"), named("new", "other")]);
    assert_eq!((error.index, error.field), (1, Some("name")));
}

#[test]
fn the_number_of_tokens_is_bounded() {
    let many: Vec<_> = (0..=MAX_TOKENS).map(|n| entry(&n.to_string())).collect();
    assert!(TokenTable::new(&many[1..]).is_ok());
    assert_eq!(refusal(&many).index, MAX_TOKENS);
}

#[test]
fn a_table_shows_no_digest() {
    let table = TokenTable::new(&[entry("a")]).unwrap();
    let shown = format!("{table:?}");
    assert!(!shown.contains(&entry("a").sha256[12..]), "{shown}");
}

proptest! {
    #[test]
    fn the_whole_digest_counts(count in 1_usize..20, which in 0_usize..20, flipped in 0_usize..256) {
        let entries: Vec<_> = (0..count).map(|n| entry(&n.to_string())).collect();
        let table = TokenTable::new(&entries).unwrap();
        let which = which % count;
        let known = Sha256Digest::of(which.to_string().as_bytes());
        prop_assert_eq!(table.position(&known), Some(which));
        let mut bytes = *known.as_bytes();
        bytes[flipped / 8] ^= 1 << (flipped % 8);
        prop_assert_eq!(table.position(&Sha256Digest::from_bytes(bytes)), None);
    }
}
