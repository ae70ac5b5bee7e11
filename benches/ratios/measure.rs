//! Pairs of timings and what is said of them.

use std::fmt::Write as _;
use std::time::Duration;

/// Pairs that are run before the measured ones.
pub(crate) const WARM_UP: usize = 2;

/// A baseline that spreads wider than this says more about the machine than about the service.
const STEADY: f64 = 0.15;

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) path: &'static str,
    pub(crate) baseline: &'static str,
    /// The ratio that the product promises, where it promises one.
    pub(crate) bound: Option<f64>,
    /// Baseline and service, in the order in which they ran.
    pub(crate) pairs: Vec<(Duration, Duration)>,
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len().saturating_sub(1)) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let part = place - place.floor();
    sorted[below] * (1.0 - part) + sorted[above] * part
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

impl Row {
    fn ratios(&self) -> Vec<f64> {
        sorted(
            self.pairs
                .iter()
                .map(|(bare, service)| service.as_secs_f64() / bare.as_secs_f64()),
        )
    }

    fn bare(&self) -> Vec<f64> {
        sorted(self.pairs.iter().map(|(bare, _)| bare.as_secs_f64()))
    }

    fn service(&self) -> Vec<f64> {
        sorted(self.pairs.iter().map(|(_, service)| service.as_secs_f64()))
    }

    /// Half the distance of the quartiles over the median.
    fn baseline_spread(&self) -> f64 {
        let bare = self.bare();
        (quantile(&bare, 0.75) - quantile(&bare, 0.25)) / 2.0 / quantile(&bare, 0.5)
    }

    fn verdict(&self) -> &'static str {
        let ratio = quantile(&self.ratios(), 0.5);
        match self.bound {
            _ if self.baseline_spread() > STEADY => "baseline unsteady",
            None => "reported",
            Some(bound) if ratio <= bound => "met",
            Some(_) => "missed",
        }
    }
}

/// The table in Markdown, times in milliseconds.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| path | baseline | bare ms | service ms | ratio (quartiles) | bound | pairs | verdict |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let ratios = row.ratios();
        let bound = row.bound.map_or("–".to_owned(), |bound| format!("{bound}"));
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} | {:.2} ({:.2}–{:.2}) | {bound} | {} | {} |",
            row.path,
            row.baseline,
            quantile(&row.bare(), 0.5) * 1e3,
            quantile(&row.service(), 0.5) * 1e3,
            quantile(&ratios, 0.5),
            quantile(&ratios, 0.25),
            quantile(&ratios, 0.75),
            row.pairs.len(),
            row.verdict(),
        );
    }
    text
}

/// Every pair, one JSON object per line, in nanoseconds.
pub(crate) fn samples(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for (bare, service) in &row.pairs {
            let sample = serde_json::json!({
                "path": row.path,
                "bare_ns": bare.as_nanos() as u64,
                "service_ns": service.as_nanos() as u64,
            });
            let _ = writeln!(text, "{sample}");
        }
    }
    text
}
