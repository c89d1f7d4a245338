//! Lists in pages.

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

/// A page ends early when it has more bytes than this: a thousand large documents would be a gigabyte. One item alone may be larger.
pub const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// How many items there are in all pages.
pub const X_TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// The first items, as many as a page has, and whether these are all.
pub fn cut<T>(items: impl IntoIterator<Item = T>, limit: usize) -> (Vec<T>, bool) {
    let mut items = items.into_iter();
    let page: Vec<T> = items.by_ref().take(limit).collect();
    let is_last = items.next().is_none();
    (page, is_last)
}

/// Says where the next page is: the same query, with some parameters set and others left out.
pub fn link_next(headers: &mut HeaderMap, uri: &Uri, set: &[(&str, &str)], without: &[&str]) {
    let query = uri.query().unwrap_or_default();
    let kept = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| !without.contains(&&**name) && set.iter().all(|(other, _)| other != name));
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).extend_pairs(set).finish();
    if let Ok(value) = HeaderValue::from_str(&format!("<{}?{query}>; rel=\"next\"", uri.path())) {
        headers.insert(header::LINK, value);
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_page_is_the_last_one_when_nothing_comes_after_it() {
        assert_eq!(cut([1, 2, 3], 2), (vec![1, 2], false));
        assert_eq!(cut([1, 2, 3], 3), (vec![1, 2, 3], true));
        assert_eq!(cut([0; 0], 3), (vec![], true));
    }
}
