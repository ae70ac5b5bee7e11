//! `spillbox doctor`: whether a store can be trusted, found by trying it.

use std::path::PathBuf;

use crate::artifact::format::{FormatError, StoreFormat};
use crate::cli::failure::{Failure, Stop};
use crate::cli::output;
use crate::cli::store::{failure_of, settings};
use crate::clock::SystemClock;
use crate::ids::SystemIds;
use crate::open_store::{attest_options, attestation_target, open_store};
use crate::settings::Flag;
use crate::store::attest::{attest, render_table};

/// Attests a store by racing conditional writes, and says what each finding means.
///
/// Exit status: 0 trusted, 3 usable with restrictions, 4 refused, 1 unreachable.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// The store: local:DIR, s3://bucket/prefix or memory:
    /// [env: SPILLBOX_STORE] [default: local:$XDG_DATA_HOME/spillbox]
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// A TOML file with settings; deploy/config.example.toml explains them
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Prints the attestation as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command. `store_variable` is what SPILLBOX_STORE says.
///
/// # Errors
/// The settings are refused, or do not lead to a store.
pub async fn run(args: &DoctorArgs, store_variable: Option<&str>) -> Result<u8, Stop> {
    let flag = |name, value: &str| Flag {
        name,
        key: "store.url",
        value: value.to_owned(),
    };
    let store = args.store.as_deref().map(|value| flag("--store", value));
    let store = store.or_else(|| store_variable.map(|value| flag("SPILLBOX_STORE", value)));
    let settings = settings(args.config.as_deref(), store.as_slice())?.store;
    let failed = |error| -> Failure { failure_of(&error, &settings.url) };
    let (opened, keys) = open_store(&settings).await.map_err(failed)?;
    let target = attestation_target(&settings, &opened, &keys)
        .await
        .map_err(failed)?;
    // What nothing can open is not to be called trusted, however well it keeps its promises.
    if let Err(error @ FormatError::Unsupported(_)) =
        StoreFormat::read(opened.as_ref(), &keys).await
    {
        return Err(failed(error.into()).into());
    }
    let (clock, ids) = (SystemClock, SystemIds::default());
    let attestation = Box::pin(attest(&target, &clock, &ids, attest_options(&settings))).await;
    if args.json {
        let value = serde_json::to_value(&attestation)
            .map_err(|error| Failure::new(format!("cannot print the attestation: {error}")))?;
        output::write_json(&value)?;
    } else {
        output::write_bytes(render_table(&attestation).as_bytes())?;
    }
    Ok(attestation.exit_code())
}
