//! The `spillbox` binary.

fn main() {}
