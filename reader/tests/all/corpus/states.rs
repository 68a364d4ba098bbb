//! States of epochs: which are resumed, and which are refused.

use grainstore_format::Remedy;
use grainstore_reader::{EpochOptions, EpochState, ReadError, StateError};

use super::{lines, orders, table};

/// STA-1, STA-2, CON-8
#[test]
fn states_are_resumed_or_refused_as_expected() {
    let table = table("orders.json");
    let mut wrong = vec![];
    for line in lines(&table, "states") {
        let reader = orders::open(line);
        let planned = orders::padded(line, "state").parse::<EpochState>().map_err(ReadError::from).and_then(|state| {
            let position = state.position();
            let options = EpochOptions { resume: Some(state), ..orders::options(&reader, line) };
            Ok((reader.plan(&options)?, position))
        });
        let (found, detail) = match &planned {
            Ok(_) => ("ok", String::new()),
            Err(ReadError::State(error)) if is_newer(error) => ("newer", error.to_string()),
            Err(error) => ("error", error.to_string()),
        };
        if line["expect"]["result"] != found {
            wrong.push(format!("{}: {found} ({detail}) instead of {}", line["about"], line["expect"]["result"]));
        }
        if let Ok((plan, position)) = planned {
            let rest: Vec<_> = plan.plan().ordinals_from(position).collect();
            assert_eq!(rest, orders::numbers(&line["expect"]["ordinals"]), "{}", line["about"]);
            assert_eq!(plan.share().spec().start, position);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_newer(error: &StateError) -> bool {
    error.remedy() == Some(Remedy::Upgrade)
}
