use super::*;

fn refused(url: &str, allow_private: bool) -> Option<OwnerSetupError> {
    let name = "memory".parse().unwrap();
    Endpoint::new(&name, url, allow_private).err()
}

#[test]
fn only_a_plain_public_url_is_asked() {
    for good in [
        "https://memory.example",
        "http://8.8.8.8:80/secret/",
        "https://[2606:4700::1]",
    ] {
        assert!(refused(good, false).is_none(), "{good}");
    }
    for private in [
        "http://127.0.0.1:9",
        "http://127.1",
        "http://0x7f000001",
        "http://2130706433",
        "http://0177.0.0.1",
        "http://169.254.169.254/latest",
        "http://[::1]",
        "http://[::ffff:a9fe:a9fe]",
    ] {
        let error = refused(private, false);
        assert!(
            matches!(error, Some(OwnerSetupError::Private(_))),
            "{private}"
        );
        assert!(refused(private, true).is_none(), "{private}");
    }
    for bad in [
        "",
        "memory.example",
        "ftp://memory.example",
        "http://",
        "http://u@h",
        "http://u:p@h",
        "http://h?q",
        "http://h#f",
        "file:///etc/passwd",
    ] {
        let error = refused(bad, true);
        assert!(matches!(error, Some(OwnerSetupError::Url(_))), "{bad}");
    }
}

#[test]
fn a_url_is_shown_nowhere() {
    let name = "memory".parse().unwrap();
    let endpoint = Endpoint::new(&name, "https://memory.example/s3cret", false).unwrap();
    assert!(!format!("{endpoint:?}").contains("s3cret"));
    let error = refused("http://u:s3cret@h", true).unwrap();
    assert!(!format!("{error:?} {error}").contains("s3cret"));
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_not_asked() {
    // No resolver is needed: every machine knows this name, and nothing listens where it leads.
    let name = "memory".parse().unwrap();
    let transaction = "tx-1".parse().unwrap();
    let public_only = Endpoint::new(&name, "http://localhost:1", false).unwrap();
    let said = public_only.observe(&transaction).await;
    let why = PrivateAddressError.to_string();
    assert_eq!(said, OwnerReply::Lost(why));
    let any = Endpoint::new(&name, "http://localhost:1", true).unwrap();
    let said = any.observe(&transaction).await;
    let why = "the owner cannot be reached".to_owned();
    assert_eq!(said, OwnerReply::Lost(why));
}
