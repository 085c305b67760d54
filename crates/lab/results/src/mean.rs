//! Means over seeds, with their confidence intervals.

use crate::quantity::{Dimension, DimensionedValue, WrittenValue};

/// A mean over seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    /// The mean of the known values.
    pub mean: DimensionedValue,
    /// Half of its 95 % confidence interval, by Student's t; none of a single value.
    pub margin: Option<f64>,
    /// The number of values.
    pub count: usize,
    /// The number of runs without a value.
    pub missing: usize,
}

impl Mean {
    /// Returns the mean of plain numbers; none of an empty list.
    pub fn of_numbers(values: &[f64]) -> Option<Self> {
        Self::of(&values.iter().map(|&value| Some(DimensionedValue::number(value))).collect::<Vec<_>>())
    }

    pub(crate) fn of(values: &[Option<DimensionedValue>]) -> Option<Self> {
        let known: Vec<DimensionedValue> = values.iter().flatten().copied().collect();
        let dimension: Dimension = known.first()?.dimension;
        let count = known.len();
        // Summed as differences from the first value, so that the mean of equal values is that value to the last bit.
        let first = known.first()?.amount;
        let mean = if known.iter().all(|value| value.amount.is_finite()) {
            first + known.iter().map(|value| value.amount - first).sum::<f64>() / count as f64
        } else {
            // A time that is `never`.
            known.iter().map(|value| value.amount).sum::<f64>() / count as f64
        };
        let squares: f64 = known.iter().map(|value| (value.amount - mean).powi(2)).sum();
        let margin = (count > 1).then(|| {
            let deviation = (squares / (count - 1) as f64).sqrt();
            students_t(count - 1) * deviation / (count as f64).sqrt()
        });
        Some(Self { mean: DimensionedValue { amount: mean, dimension }, margin, count, missing: values.len() - count })
    }
}

impl Mean {
    /// The mean and its interval as tables write them, in parts.
    pub fn written(&self) -> WrittenValue {
        self.mean.written(self.margin)
    }

    /// A plain number in per cent; anything else in its unit.
    pub(crate) fn in_percent(mut self) -> String {
        if self.mean.dimension != Dimension::NUMBER {
            return self.to_string();
        }
        self.mean.amount *= 100.0;
        self.margin = self.margin.map(|margin| margin * 100.0);
        format!("{self} %")
    }
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.margin.filter(|margin| margin.is_finite()) {
            Some(margin) => f.write_str(&self.mean.within(margin))?,
            None => write!(f, "{}", self.mean)?,
        }
        if self.missing > 0 {
            write!(f, " ({} of {})", self.count, self.count + self.missing)?;
        }
        Ok(())
    }
}

/// The 97.5 % quantile of Student's t distribution, from the usual tables: each of 1 to 30 degrees of freedom, then 40,
/// 60 and 120. Between two rows the lower row's quantile counts, which is never too small.
fn students_t(degrees: usize) -> f64 {
    const QUANTILES: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match degrees {
        0 => f64::INFINITY,
        1..=30 => QUANTILES[degrees - 1],
        31..=39 => 2.042,
        40..=59 => 2.021,
        60..=119 => 2.000,
        _ => 1.980,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_interval_of_a_mean() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0].map(|amount| Some(DimensionedValue::number(amount)));
        let mean = Mean::of(&values).unwrap();
        // The deviation is sqrt(2.5); 2.776 * sqrt(2.5 / 5).
        assert!((mean.mean.amount - 3.0).abs() < 1e-12 && (mean.margin.unwrap() - 1.962_93).abs() < 1e-4);
        assert_eq!(mean.to_string(), "3.0 ± 2.0");
        let times = [1_500_000.0, 1_502_000.0, 1_499_000.0].map(|ns| Some(DimensionedValue::ns(ns)));
        assert_eq!(Mean::of(&times).unwrap().to_string(), "1.5003 ± 0.0038 ms");
        assert_eq!(Mean::of(&[Some(DimensionedValue::number(7.0)); 2]).unwrap().to_string(), "7 ± 0");
        assert_eq!(Mean::of(&[Some(DimensionedValue::number(2.0)), None]).unwrap().to_string(), "2 (1 of 2)");
        assert_eq!(Mean::of(&[None]), None);
        // Between rows of the tables, the wider interval.
        assert_eq!((students_t(30), students_t(31), students_t(99)), (2.042, 2.042, 2.000));
        // Seeds with equal values have no interval, whatever the last bit of a sum.
        assert_eq!(Mean::of(&[Some(DimensionedValue::number(0.97)); 3]).unwrap().margin, Some(0.0));
    }
}
