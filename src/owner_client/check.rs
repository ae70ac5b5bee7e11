//! Trying an owner's endpoint against the contract: each rule is one named check.
//!
//! Every check works on transactions of its own, whose ids nobody ever used. Those that race run several
//! rounds: passing them is evidence and no proof. To publish and to remove is the owner's own business,
//! so a test endpoint offers both under the transaction's path (`PUT`, `DELETE`); without them only the
//! rules about looking and sealing are tried.

use futures_util::future::join;
use uuid::Uuid;

use super::Endpoint;
use crate::digest::Sha256Digest;
use crate::ids::IdSource;
use crate::lease::names::{OwnerGeneration, TransactionId};
use crate::lease::owner::{
    Observation, OwnerReply, Presence, Publication, Question, SealReply, Unclear,
};

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The rule held.
    Passed,
    /// It did not; how that was seen.
    Failed(String),
    /// It needs what the endpoint does not offer.
    Skipped,
}

/// One rule, tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, stable.
    pub name: &'static str,
    /// What it demands.
    pub rule: &'static str,
    /// Whether it held.
    pub outcome: CheckOutcome,
}

/// What is tried, and how hard.
#[derive(Debug, Clone, Copy)]
pub struct CheckOptions {
    /// Whether the endpoint can publish and remove by request.
    pub can_publish: bool,
    /// Rounds of every race.
    pub rounds: usize,
}

/// An endpoint under test.
struct Tried<'a> {
    endpoint: &'a Endpoint,
    ids: &'a dyn IdSource,
    now: jiff::Timestamp,
    rounds: usize,
}

type Held = Result<(), String>;

/// Tries every rule, in order, and tells of each. `now` is for the ids of transactions only.
pub async fn check(
    endpoint: &Endpoint,
    options: CheckOptions,
    ids: &dyn IdSource,
    now: jiff::Timestamp,
    mut tell: impl FnMut(&Check),
) -> Vec<Check> {
    let tried = Tried {
        endpoint,
        ids,
        now,
        rounds: options.rounds,
    };
    let mut checks = Vec::new();
    macro_rules! tried {
        ($($needs_publication:literal $name:ident: $rule:literal;)+) => { $(
            let outcome = if $needs_publication && !options.can_publish {
                CheckOutcome::Skipped
            } else {
                match Box::pin(tried.$name()).await {
                    Ok(()) => CheckOutcome::Passed,
                    Err(seen) => CheckOutcome::Failed(seen),
                }
            };
            let done = Check { name: stringify!($name), rule: $rule, outcome };
            tell(&done);
            checks.push(done);
        )+ };
    }
    tried! {
        false absent_is_an_answer: "a transaction that was never heard of is 200 `absent`, with a strong ETag";
        false transactions_are_told_apart: "ids are opaque, up to 200 bytes, any UTF-8, percent-encoded in the path";
        false seal_advances_the_generation: "a seal answers 200 or 201, `sealed_absent`, and another ETag than it named";
        false seal_is_idempotent: "sealing again is 200, and changes nothing";
        false seal_at_another_generation_is_refused: "a seal whose If-Match names another generation is 412, and seals nothing";
        false two_sealers_agree: "of two seals at once at least one is answered 200, and the absence is sealed";
        true publication_is_shown: "what was published is shown, at another generation";
        true publication_is_decided_once: "another publication under the same transaction is refused";
        true publication_is_not_sealed: "a published transaction cannot be sealed: 409 or 412";
        true stale_look_does_not_seal: "a seal at the generation from before the publication is refused (an old copy said `absent`)";
        true late_publication_is_refused: "nothing is published under a sealed transaction, ever";
        true seal_against_publication: "of a seal and a publication at once exactly one wins, and every look agrees";
        true removal_is_final: "what was removed is `removed`, and nothing is published under it again";
    }
    checks
}

fn absent_or(observation: &Observation, wanted: &Presence) -> Held {
    if observation.presence == *wanted {
        return Ok(());
    }
    Err(format!(
        "it shows {}, not {}",
        word(&observation.presence),
        word(wanted)
    ))
}

const fn word(presence: &Presence) -> &'static str {
    match presence {
        Presence::Published(_) => "`published`",
        Presence::Absent => "`absent`",
        Presence::SealedAbsent => "`sealed_absent`",
        Presence::Removed => "`removed`",
    }
}

fn said(unclear: Unclear) -> String {
    match unclear {
        Unclear::Unknown(why) => why,
        Unclear::OtherTransaction => "it answers about another transaction".to_owned(),
    }
}

fn demand(holds: bool, otherwise: &str) -> Held {
    if holds {
        Ok(())
    } else {
        Err(otherwise.to_owned())
    }
}

impl Tried<'_> {
    fn fresh(&self) -> Uuid {
        self.ids.uuid(self.now)
    }

    fn question(&self) -> Question {
        self.question_named(&format!("spillbox-check-{}", self.fresh()))
    }

    fn question_named(&self, name: &str) -> Question {
        let bytes = self.fresh();
        let sha256 = Sha256Digest::of(bytes.as_bytes());
        let digits = sha256.to_hex();
        Question {
            transaction_id: name
                .parse::<TransactionId>()
                .expect("short words without control characters"),
            source_id: format!("artifact:check:{bytes}:{}", &digits[..12]),
            sha256,
        }
    }

    async fn look(&self, question: &Question) -> Result<Observation, String> {
        let name = &question.transaction_id;
        let reply = self.endpoint.observe(name).await;
        reply.observation(name).map_err(said)
    }

    async fn shows(
        &self,
        question: &Question,
        wanted: &Presence,
    ) -> Result<OwnerGeneration, String> {
        let seen = self.look(question).await?;
        absent_or(&seen, wanted)?;
        Ok(seen.generation)
    }

    async fn seal(&self, question: &Question, at: &str) -> Result<SealReply, String> {
        let reply = self.endpoint.seal(question, at).await;
        reply.sealing(&question.transaction_id).map_err(said)
    }

    async fn sealed(&self, question: &Question) -> Result<OwnerGeneration, String> {
        let before = self.shows(question, &Presence::Absent).await?;
        match self.seal(question, before.as_str()).await? {
            SealReply::Sealed(_) => self.shows(question, &Presence::SealedAbsent).await,
            SealReply::Refused => Err("it refused to seal what it shows as absent".to_owned()),
        }
    }

    /// Publishes; whether it was taken.
    async fn publish(&self, question: &Question) -> Result<bool, String> {
        match self.endpoint.publish(question).await {
            OwnerReply::Answered { status, .. } => match status {
                200 | 201 | 204 => Ok(true),
                409 | 410 | 412 => Ok(false),
                other => Err(format!(
                    "it answered the publication {other}: 200 or 201 mean taken, 409 or 410 refused"
                )),
            },
            OwnerReply::Lost(why) => Err(why),
        }
    }

    async fn published(&self, question: &Question) -> Result<OwnerGeneration, String> {
        demand(
            self.publish(question).await?,
            "it refused the first publication under a transaction",
        )?;
        self.shows(question, &shown(question)).await
    }

    async fn absent_is_an_answer(&self) -> Held {
        let question = self.question();
        let first = self.shows(&question, &Presence::Absent).await?;
        let again = self.shows(&question, &Presence::Absent).await?;
        demand(first == again, "two looks at the same state have two ETags")
    }

    async fn transactions_are_told_apart(&self) -> Held {
        let id = self.fresh();
        let long = format!("{id}{}", "x".repeat(200 - id.to_string().len()));
        let pairs = [
            (format!("check/{id}"), format!("check%2F{id}")),
            (format!("Check {id}"), format!("check {id}")),
            (format!("check-\u{fc} {id}"), format!("check-u {id}")),
            (format!("check+{id}"), format!("check {id}?")),
            (long.clone(), long[..199].to_owned()),
        ];
        for (one, other) in pairs {
            let (one, other) = (self.question_named(&one), self.question_named(&other));
            let name = |question: &Question| question.transaction_id.as_str().to_owned();
            let at = |why: String| format!("`{}` beside `{}`: {why}", name(&one), name(&other));
            self.sealed(&one).await.map_err(at)?;
            self.shows(&other, &Presence::Absent).await.map_err(at)?;
        }
        Ok(())
    }

    async fn seal_advances_the_generation(&self) -> Held {
        let question = self.question();
        let before = self.shows(&question, &Presence::Absent).await?;
        let SealReply::Sealed(named) = self.seal(&question, before.as_str()).await? else {
            return Err("it refused to seal what it shows as absent".to_owned());
        };
        let after = self.shows(&question, &Presence::SealedAbsent).await?;
        demand(after != before, "the ETag is the same before and after")?;
        let is_named = named.is_some_and(|named| named == after);
        demand(
            is_named,
            "the seal's answer has no ETag, or another one than the look after it",
        )
    }

    async fn seal_is_idempotent(&self) -> Held {
        let question = self.question();
        let generation = self.sealed(&question).await?;
        let again = self.seal(&question, generation.as_str()).await?;
        let is_sealed = matches!(again, SealReply::Sealed(_));
        demand(is_sealed, "it refused to seal again")?;
        self.shows(&question, &Presence::SealedAbsent)
            .await
            .map(drop)
    }

    async fn seal_at_another_generation_is_refused(&self) -> Held {
        let question = self.question();
        self.shows(&question, &Presence::Absent).await?;
        let other = format!("no-generation-{}", self.fresh());
        let refused = self.seal(&question, &other).await? == SealReply::Refused;
        demand(refused, "it sealed at a generation that it never had")?;
        self.shows(&question, &Presence::Absent).await.map(drop)
    }

    async fn two_sealers_agree(&self) -> Held {
        for _ in 0..self.rounds {
            let question = self.question();
            let before = self.shows(&question, &Presence::Absent).await?;
            let at = before.as_str();
            let (one, other) = join(self.seal(&question, at), self.seal(&question, at)).await;
            let is_sealed = [one?, other?]
                .iter()
                .any(|reply| matches!(reply, SealReply::Sealed(_)));
            demand(is_sealed, "both were refused")?;
            self.shows(&question, &Presence::SealedAbsent).await?;
        }
        Ok(())
    }

    async fn publication_is_shown(&self) -> Held {
        let question = self.question();
        let before = self.shows(&question, &Presence::Absent).await?;
        let after = self.published(&question).await?;
        demand(after != before, "the ETag is the same before and after")
    }

    async fn publication_is_decided_once(&self) -> Held {
        let question = self.question();
        self.published(&question).await?;
        let other = self.question_named(question.transaction_id.as_str());
        let is_taken = self.publish(&other).await?;
        demand(!is_taken, "it took a second, other publication")?;
        self.shows(&question, &shown(&question)).await.map(drop)
    }

    async fn publication_is_not_sealed(&self) -> Held {
        let question = self.question();
        let generation = self.published(&question).await?;
        let sealed = self.seal(&question, generation.as_str()).await?;
        demand(sealed == SealReply::Refused, "it sealed what is published")?;
        self.shows(&question, &shown(&question)).await.map(drop)
    }

    async fn stale_look_does_not_seal(&self) -> Held {
        let question = self.question();
        let before = self.shows(&question, &Presence::Absent).await?;
        self.published(&question).await?;
        let sealed = self.seal(&question, before.as_str()).await?;
        let otherwise = "it sealed at the generation from before the publication";
        demand(sealed == SealReply::Refused, otherwise)?;
        self.shows(&question, &shown(&question)).await.map(drop)
    }

    async fn late_publication_is_refused(&self) -> Held {
        let question = self.question();
        self.sealed(&question).await?;
        let is_taken = self.publish(&question).await?;
        demand(!is_taken, "it published under a sealed transaction")?;
        self.shows(&question, &Presence::SealedAbsent)
            .await
            .map(drop)
    }

    async fn seal_against_publication(&self) -> Held {
        for round in 0..self.rounds {
            let question = self.question();
            let before = self.shows(&question, &Presence::Absent).await?;
            let (seal, publish) = (
                self.seal(&question, before.as_str()),
                self.publish(&question),
            );
            // Whoever is asked first has an advantage: they take turns.
            let (sealed, is_published) = if round % 2 == 0 {
                join(seal, publish).await
            } else {
                let (published, sealed) = join(publish, seal).await;
                (sealed, published)
            };
            let is_sealed = matches!(sealed?, SealReply::Sealed(_));
            match (is_sealed, is_published?) {
                (true, true) => return Err("both were taken".to_owned()),
                (false, false) => return Err("both were refused".to_owned()),
                (true, false) => self.shows(&question, &Presence::SealedAbsent).await?,
                (false, true) => self.shows(&question, &shown(&question)).await?,
            };
        }
        Ok(())
    }

    async fn removal_is_final(&self) -> Held {
        let question = self.question();
        let before = self.published(&question).await?;
        match self.endpoint.remove(&question.transaction_id).await {
            OwnerReply::Answered {
                status: 200 | 204, ..
            } => {}
            OwnerReply::Answered { status, .. } => {
                return Err(format!("it answered the removal {status}"));
            }
            OwnerReply::Lost(why) => return Err(why),
        }
        let after = self.shows(&question, &Presence::Removed).await?;
        demand(after != before, "the ETag is the same before and after")?;
        let is_taken = self.publish(&question).await?;
        demand(!is_taken, "it published again what was removed")?;
        self.shows(&question, &Presence::Removed).await.map(drop)
    }
}

fn shown(question: &Question) -> Presence {
    Presence::Published(Publication {
        source_id: question.source_id.clone(),
        sha256: question.sha256,
    })
}
