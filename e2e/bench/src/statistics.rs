//! Percentiles and medians.

/// The percentiles that are shown, in per cent.
pub(super) const PERCENTILES: [f64; 4] = [50.0, 90.0, 95.0, 99.0];

/// The value below which `percent` per cent of the samples lie (nearest rank). Samples are sorted in place.
pub(super) fn percentile(samples: &mut [f64], percent: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let Some(last) = samples.len().checked_sub(1) else {
        return f64::NAN;
    };
    // Counts of samples are far below the precision of f64.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    let rank = (percent / 100.0 * samples.len() as f64).ceil() as usize;
    samples[rank.saturating_sub(1).min(last)]
}

/// The middle value; the mean of the two in the middle when there is none.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Nanoseconds as microseconds.
#[allow(clippy::cast_precision_loss)]
pub(super) fn micros(nanos: u64) -> f64 {
    // A duration of a benchmark is far below the precision of f64.
    nanos as f64 / 1_000.0
}

/// A count or a size as a figure.
#[allow(clippy::cast_precision_loss)]
pub(super) fn figure(count: u64) -> f64 {
    // Counts and sizes of a benchmark are far below the precision of f64.
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_actual_samples() {
        let mut samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let shown = PERCENTILES.map(|percent| percentile(&mut samples, percent));
        assert_eq!(
            shown.map(f64::to_bits),
            [100.0, 180.0, 190.0, 198.0].map(f64::to_bits)
        );
        assert_eq!(percentile(&mut [7.0], 99.0).to_bits(), 7.0_f64.to_bits());
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let cases: [(&[f64], f64); 3] =
            [(&[3.0, 1.0, 2.0], 2.0), (&[4.0, 1.0], 2.5), (&[-5.0], -5.0)];
        for (values, expected) in cases {
            assert_eq!(median(values).to_bits(), expected.to_bits(), "{values:?}");
        }
    }
}
