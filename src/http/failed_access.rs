//! The pace of requests without a valid token, by the address that they come from.
//!
//! Each of them costs a comparison and a line of the audit stream, and nobody stands behind it whose own pace
//! could be held. A valid token is never held up by it, wherever it comes from, so that clients behind one
//! proxy do not suffer from each other. The table is bounded: when it is full, addresses that it does not know share one
//! place.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;

use crate::http::problem::Problem;
use crate::http::rate_limit::Pace;
use crate::limits::{FAILED_ACCESS_ADDRESSES, FAILED_ACCESS_BURST, FAILED_ACCESS_PER_SECOND};

/// The address that a request comes from; the listener puts it among the request's extensions.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

/// The place of those that the table has no room for; no connection comes from it.
const EVERYBODY_ELSE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// How many requests without a valid token each address may send.
#[derive(Debug)]
pub struct FailedAccess {
    pace: Pace<IpAddr>,
    most_addresses: usize,
}

impl Default for FailedAccess {
    fn default() -> Self {
        let number = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self {
            pace: Pace::new(
                number(FAILED_ACCESS_PER_SECOND),
                number(FAILED_ACCESS_BURST),
            ),
            most_addresses: FAILED_ACCESS_ADDRESSES,
        }
    }
}

impl FailedAccess {
    /// Counts a request without a valid token; one without an address comes from this process.
    ///
    /// # Errors
    /// It comes too early: 429 with the time after which the next one is looked at.
    pub(crate) fn admit(&self, peer: Option<&PeerAddress>) -> Result<(), Problem> {
        let Some(PeerAddress(address)) = peer else {
            return Ok(());
        };
        // Whoever is known shares the common place meanwhile: it is held back there at least as long.
        let is_full = self.pace.remembered() >= self.most_addresses;
        self.pace.admit(&if is_full {
            EVERYBODY_ELSE
        } else {
            network_of(*address)
        })
    }

    /// Forgets addresses that may send a whole burst again.
    pub fn forget_idle(&self) {
        self.pace.forget_idle();
    }
}

/// A host of IPv6 has 2^64 addresses to choose from, so its network counts.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn small() -> FailedAccess {
        let number = |n| NonZeroU32::new(n).unwrap();
        FailedAccess {
            pace: Pace::new(number(1), number(2)),
            most_addresses: 3,
        }
    }

    fn admits(paced: &FailedAccess, address: &str) -> bool {
        let peer = PeerAddress(address.parse().unwrap());
        paced.admit(Some(&peer)).is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn each_address_has_its_own_pace_and_this_process_none() {
        let paced = small();
        for expected in [true, true, false] {
            assert_eq!(admits(&paced, "10.0.0.1"), expected);
        }
        assert!(admits(&paced, "10.0.0.2"));
        assert!((0..10).all(|_| paced.admit(None).is_ok()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(admits(&paced, "10.0.0.1"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_addresses_of_one_network_count_as_one() {
        let paced = FailedAccess {
            most_addresses: 8,
            ..small()
        };
        assert!(admits(&paced, "2001:db8::1"));
        assert!(admits(&paced, "2001:db8::ffff:2"));
        assert!(!admits(&paced, "2001:db8::3"));
        assert!(admits(&paced, "2001:db8:0:1::3"));
        for expected in [true, true, false] {
            assert_eq!(admits(&paced, "::ffff:10.0.0.1"), expected);
        }
        assert!(!admits(&paced, "10.0.0.1"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_of_addresses_takes_no_more_room_than_there_is() {
        let paced = small();
        let mut admitted = 0;
        for n in 0..1_000_u32 {
            let address = Ipv4Addr::from(0x0a00_0001 + n);
            admitted += usize::from(admits(&paced, &address.to_string()));
        }
        assert!(paced.pace.remembered() <= 4, "{}", paced.pace.remembered());
        // Three of their own, and a burst of two for everybody else.
        assert_eq!(admitted, 5);
        tokio::time::advance(Duration::from_secs(10)).await;
        paced.forget_idle();
        assert_eq!(paced.pace.remembered(), 0, "who is idle makes room");
    }
}
