//! The fifteen measures of multi-label prediction (Petković et al. 2020b §5.4), and their weighted versions.
//!
//! Each row has a set of labels, and a prediction: scores of labels, and a set of predicted labels. Several rows may
//! share a prediction, as the rows in a leaf of a tree do. Measures of sets depend on the predicted sets, measures of
//! the order of labels and areas under curves on the scores. Two conventions are offered, because the system CLUS, which
//! made the figures of the papers, differs from the textbooks in three measures:
//!
//! | measure | textbook | clus |
//! |---|---|---|
//! | one error | the label with the highest score, the first of equals, is not in the set | what is predicted of that label is wrong |
//! | coverage | rank of the last label of the set, less 1; 0 for empty sets | that rank; rows with empty sets left out |
//! | ranking loss | pairs with equal scores are wrong | labels with equal scores are in the order of their numbers |
//!
//! In both: among empty sets precision, recall, F1 and accuracy are 1; a precision without predicted labels and a recall
//! without labels are 0 otherwise. A label that all rows have, or none, has AUROC 1/2; one that no row has has AUPRC 0.
//! Every label enters the averages. Areas under precision-recall curves take one threshold for each score that occurs,
//! interpolate as Davis and Goadrich (2006) do, and are flat down to recall 0.
//!
//! With weights of labels (hierarchies: Vens et al. 2008) sets are measured by the weights of their labels, and averages
//! over labels are weighted. Measures of the order of labels and subset accuracy do not depend on them. Means over rows
//! and areas are weighted by the weights of rows.
//!
//! Memory: 40 bytes for each label of a prediction whose score is not 0, 120 bytes for each row.
//!
//! ```
//! use ferrank_measures::{Conventions, Judge, LabelSets, Measure, Predictions};
//!
//! let mut sets = LabelSets::default();
//! sets.push([0]);
//! sets.push([1]);
//! let mut predictions = Predictions::new(2);
//! predictions.push([(0, 0.8), (1, 0.2)], [0]);
//! predictions.push([(0, 0.6), (1, 0.4)], [0]);
//! let measures = [Measure::HammingLoss, Measure::AverageAuroc];
//! let mut judge = Judge::new(&sets, &predictions, &measures, Conventions::Textbook);
//! assert_eq!(judge.judge(&[0, 1]), [0.5, 1.0]);
//! ```

mod areas;
mod judge;
mod measure;
mod predictions;
mod row_terms;
mod tallies;

pub use areas::{groups_by_score, precision_recall_area, roc_area};
pub use judge::Judge;
pub use measure::{Conventions, Measure};
pub use predictions::{LabelSets, Predictions};
