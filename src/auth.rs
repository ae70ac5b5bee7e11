//! Who may do what: pure decisions, no request and no store.
//!
//! A caller presents a bearer token; its SHA-256 is looked for in the [`TokenTable`] of the
//! configuration and gives a [`Principal`]: a tenant, a set of [`Scope`]s, and an id that may stand in
//! logs. Everything after that works on the principal alone; the token is forgotten at once. What must
//! hold: a tenant comes from a principal and from nowhere else, so that no path, header or query can
//! name another one (ADR 10).

mod authenticator;
mod bearer;
mod grant;
mod principal;
mod scope;
mod signing;
mod token_table;

pub use authenticator::{Authenticator, Refusal};
pub use bearer::{PresentedToken, is_token_text};
pub use grant::{CapabilityGrant, GrantError, SESSION_TOKEN_PREFIX, SessionGrant};
pub use principal::{Credential, InvalidPrincipalNameError, Principal, PrincipalId};
pub use scope::{Scope, Scopes, UnknownScopeError};
pub use signing::{SigningKeyError, SigningKeys};
pub use token_table::{TokenEntry, TokenEntryError, TokenTable};
