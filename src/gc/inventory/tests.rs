use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::store::ETag;

const A: &str = "p/v1/t/x/a/";
const B: &str = "p/v1/t/x/b/";

fn listed(key: String, size_bytes: u64) -> Listed {
    Listed {
        key,
        size_bytes,
        etag: ETag(format!("\"{size_bytes}\"")),
        last_modified: Timestamp::UNIX_EPOCH,
    }
}

fn name(n: u32) -> String {
    format!("{:026}/{:026}", n / 7, n)
}

/// Feeds both listings page by page and collects everything.
fn run(a: &[Listed], b: &[Listed], page: usize) -> Result<Vec<Step>, InventoryError> {
    let mut inventory = Inventory::new(A, B);
    let mut pages = [a.chunks(page), b.chunks(page)];
    let mut steps = Vec::new();
    loop {
        match inventory.next_step() {
            Step::Need(side) => match pages[side as usize].next() {
                Some(page) => inventory.push(side, page.to_vec())?,
                None => inventory.finish(side),
            },
            Step::End => return Ok(steps),
            step @ (Step::Pair(_) | Step::Foreign { .. }) => steps.push(step),
        }
    }
}

proptest! {
    /// Whatever the pages, every key comes exactly once, joined with its partner, in order.
    #[test]
    fn the_join_is_that_of_two_maps(
        manifests in prop::collection::btree_set(0_u32..60, 0..40),
        bodies in prop::collection::btree_set(0_u32..60, 0..40),
        page in 1_usize..9,
    ) {
        let a: Vec<_> = manifests.iter().map(|n| listed(format!("{A}{}", name(*n)), 1)).collect();
        let b: Vec<_> = bodies.iter().map(|n| listed(format!("{B}{}", name(*n)), 2)).collect();
        let mut expected: BTreeMap<String, (bool, bool)> = BTreeMap::new();
        for n in &manifests {
            expected.entry(name(*n)).or_default().0 = true;
        }
        for n in &bodies {
            expected.entry(name(*n)).or_default().1 = true;
        }
        let steps = run(&a, &b, page).unwrap();
        let seen: Vec<_> = steps.iter().map(|step| match step {
            Step::Pair(pair) => {
                let name = pair.artifact.to_string().replace('.', "/");
                (name, (pair.manifest.is_some(), pair.body.is_some()))
            }
            Step::Foreign { .. } | Step::Need(_) | Step::End => panic!("{step:?}"),
        }).collect();
        prop_assert_eq!(seen, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn foreign_keys_are_told_one_by_one_and_join_nothing() {
    let own = name(3);
    let a = [
        listed(format!("{A}{own}"), 1),
        listed(format!("{A}{own}/x"), 2),
        listed(format!("{A}notes.md"), 3),
    ];
    let b = [
        listed(format!("{B}{own}"), 4),
        listed(format!("{B}notes.md"), 5),
        listed(format!("{B}zz"), 6),
    ];
    let steps = run(&a, &b, 2).unwrap();
    let foreign: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Foreign { key, size_bytes } => Some((key.as_str(), *size_bytes)),
            Step::Pair(_) | Step::Need(_) | Step::End => None,
        })
        .collect();
    let expected = [
        (format!("{A}{own}/x"), 2),
        (format!("{A}notes.md"), 3),
        (format!("{B}notes.md"), 5),
        (format!("{B}zz"), 6),
    ];
    assert!(
        foreign
            .iter()
            .copied()
            .eq(expected.iter().map(|(key, size)| (key.as_str(), *size)))
    );
    assert_eq!(steps.len(), 5);
}

#[test]
fn a_listing_that_goes_backwards_or_elsewhere_is_an_error() {
    let mut inventory = Inventory::new(A, B);
    let backwards = vec![
        listed(format!("{A}{}", name(2)), 1),
        listed(format!("{A}{}", name(1)), 1),
    ];
    let refused = inventory.push(Side::Manifests, backwards).unwrap_err();
    assert!(matches!(refused, InventoryError::OutOfOrder { .. }));
    let mut inventory = Inventory::new(A, B);
    let elsewhere = vec![listed(format!("{B}{}", name(1)), 1)];
    let refused = inventory.push(Side::Manifests, elsewhere).unwrap_err();
    assert!(matches!(refused, InventoryError::WrongPrefix { .. }));
    // Across pages as well, and the same key twice.
    let mut inventory = Inventory::new(A, B);
    let page = vec![listed(format!("{A}{}", name(2)), 1)];
    inventory.push(Side::Manifests, page.clone()).unwrap();
    assert!(inventory.push(Side::Manifests, page).is_err());
}

#[test]
fn nothing_is_told_before_both_sides_are_known() {
    let mut inventory = Inventory::new(A, B);
    assert_eq!(inventory.next_step(), Step::Need(Side::Manifests));
    let page = vec![listed(format!("{A}{}", name(1)), 1)];
    inventory.push(Side::Manifests, page).unwrap();
    // The body's page may begin before the manifest's.
    assert_eq!(inventory.next_step(), Step::Need(Side::Bodies));
    inventory.finish(Side::Bodies);
    assert!(matches!(inventory.next_step(), Step::Pair(_)));
    assert_eq!(inventory.next_step(), Step::Need(Side::Manifests));
}
