//! Tool result budgets: what of a tool's output stands in the prompt, and how it is worded.
//!
//! Pure: no I/O, no clock, no environment. A [`profile::Profile`] holds the numbers and the forms of one
//! system; the deciding functions take it as data:
//!
//! 1. [`limit`] resolves the limit of one tool, [`decide`] judges one result by it.
//! 2. [`turn`] judges the results of one turn together.
//! 3. [`rendering`] words what stands for a spilled result, [`fallback`] what stands for one that could
//!    not be saved, [`clear`] what stands for an old one.
//! 4. [`frozen`] says what is kept of a decision, so that every replica repeats it.
//!
//! What acts on these decisions (saving, recording) stands in `decision`.

pub mod backlog;
pub mod clear;
pub mod copy_check;
pub mod decide;
pub mod fallback;
pub mod frames;
pub mod frozen;
pub mod limit;
pub mod parts;
pub mod preview;
pub mod profile;
pub mod profiles;
pub mod rendering;
pub mod switches;
pub mod table;
pub mod template;
pub mod text_bounds;
pub mod turn;
