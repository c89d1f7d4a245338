//! Tables as kubectl has them: columns and nothing between them.

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table as Grid};

/// Columns, and rows of cells.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new<C: Into<String>>(columns: impl IntoIterator<Item = C>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Its lines: the names of the columns, then one for each row.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut grid = Grid::new();
        grid.load_preset(NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(&self.columns);
        for row in &self.rows {
            grid.add_row(row);
        }
        for column in grid.column_iter_mut() {
            column.set_padding((0, 3));
        }
        grid.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        self.lines().join("\n")
    }

    /// All of it, further to the right.
    pub(crate) fn indented(&self) -> String {
        self.lines().iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_as_wide_as_they_must_be_and_lines_end_where_the_text_ends() {
        let mut table = Table::new(["ID", "LABELS", "REVISION"]);
        table.row(["east", "a=b", "12"]);
        table.row(["a-long-name", "", "3"]);
        assert_eq!(
            table.text(),
            "ID            LABELS   REVISION\neast          a=b      12\na-long-name            3"
        );
        assert_eq!(Table::new(["A", "B"]).indented(), "  A   B");
    }
}
