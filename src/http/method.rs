//! Methods as words of a closed list: HTTP lets callers invent them, and an invented one is caller text.

use axum::http::Method;

/// Returns the method's name where it is a common one, else `other`: for logs and labels.
pub(crate) fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::DELETE => "DELETE",
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        Method::POST => "POST",
        Method::PUT => "PUT",
        _ => "other",
    }
}
