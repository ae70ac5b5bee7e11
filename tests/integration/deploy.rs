//! What `deploy/` ships, against the code: settings that exist, commands that parse, ports that agree, keys that
//! are built, metrics that are exposed. That the files are what Kubernetes, CloudFormation, Prometheus and systemd
//! want is `scripts/test-deploy.sh`; that the whole of it runs, `scripts/test-compose.sh`.

mod aws;
mod commands;
mod compose;
mod files;
mod kubernetes;
mod observability;
mod settings;
