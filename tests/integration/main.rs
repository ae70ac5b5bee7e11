//! The one integration test binary: linking it once costs minutes less than one binary per file.

mod vectors;
