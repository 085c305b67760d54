//! `narrows explain`: what the slowest flows of a scheme waited for.

mod causes;
mod traits;

use crate::args::ExplainArgs;
use crate::exit::Failure;

pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    super::show::not_a_file(&args.directory)?;
    if args.traits { traits::explain(args) } else { causes::explain(args) }
}
