//! What the failures of a store mean for a collection, for those that tell callers of them.

use crate::artifact::request::code_of_store_error;
use crate::error::ErrorCode;
use crate::store::StoreErrorKind;

/// What a store answered a collector.
pub use crate::store::StoreError as CollectionStoreError;

/// Returns the code of a store's failure. A collector has credentials of its own, so what it is denied has
/// a code that names their setting.
pub fn code_of_failure(error: &CollectionStoreError) -> ErrorCode {
    if error.is(StoreErrorKind::Denied) {
        ErrorCode::GcDenied
    } else {
        code_of_store_error(error.kind)
    }
}
