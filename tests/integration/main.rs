//! Every integration test, in one binary: linking once is what keeps the suite fast.
#![allow(
    clippy::unwrap_used,
    reason = "what a test cannot set up is a failed test"
)]

#[path = "../support"]
mod support {
    pub(crate) mod app;
    pub(crate) mod chaotic;
    pub(crate) mod collection;
    pub(crate) mod contract;
    pub(crate) mod crash;
    pub(crate) mod hooked;
    pub(crate) mod leases;
    pub(crate) mod library;
    pub(crate) mod owner;
    pub(crate) mod program;
    pub(crate) mod s3_server;
    pub(crate) mod slow;
}

mod attest;
mod canary;
mod cli_access;
mod cli_clear;
mod cli_container;
mod cli_files;
mod cli_grep;
mod cli_hook;
mod cli_journal;
mod cli_profiles;
mod cli_run;
mod cli_serve;
mod cli_serve_limits;
mod cli_signals;
mod cli_spool;
mod cli_terminal;
mod client_python;
mod conformance;
mod decision_budget;
mod decision_faults;
mod deploy;
mod gc_collect;
mod gc_cost;
mod gc_crash;
mod gc_erase;
mod gc_faults;
mod gc_finish;
mod gc_scrub;
mod gc_service;
mod gc_usage;
mod gc_why;
mod http_access;
mod http_audit;
mod http_bad_input;
mod http_contract;
mod http_examples;
mod http_gc;
mod http_grep;
mod http_health;
mod http_host;
mod http_journal;
mod http_lease_faults;
mod http_leases;
mod http_limits;
mod http_list;
mod http_mcp;
mod http_metrics;
mod http_read;
mod http_results;
mod http_save;
mod http_socket;
mod http_turns;
mod lease_budget;
mod lease_chaos;
mod lease_faults;
mod lease_keep_alive;
mod lease_outcomes;
mod lease_publish;
mod lease_race;
mod lease_reconcile;
mod lease_run;
mod main_job;
mod owner_check;
mod read_cases;
mod real_store;
mod s3_store;
mod save_budget;
mod save_faults;
mod security_clients;
mod vectors;
