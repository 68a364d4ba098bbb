//! Writes LMDB files of any page size, in the simplest way: no free pages, one transaction.

/// A file under construction.
pub(crate) struct Pages {
    page_len: usize,
    /// Page 2 and those after it.
    pages: Vec<u8>,
}

impl Pages {
    /// A file whose main database holds `entries`, which are in order.
    pub(crate) fn of(page_len: usize, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        let mut file = Self { page_len, pages: Vec::new() };
        let (root, depth) = file.tree(entries);
        file.finish(root, depth)
    }

    fn tree(&mut self, entries: &[(Vec<u8>, Vec<u8>)]) -> (u64, u16) {
        let nodes = entries.iter().map(|(key, value)| (key.clone(), self.leaf_node(key, value))).collect();
        let (mut level, mut depth) = (self.pages_of(2, nodes), 1);
        while level.len() > 1 {
            let node = |(index, (key, page)): (usize, &(Vec<u8>, u64))| {
                let key = if index == 0 { Vec::new() } else { key.clone() };
                let mut node = page.to_le_bytes()[..6].to_vec();
                node.extend_from_slice(&(key.len() as u16).to_le_bytes());
                (key.clone(), [node, key].concat())
            };
            let below = level.clone();
            level = self.pages_of(1, below.iter().enumerate().map(node).collect());
            depth += 1;
        }
        level.first().map_or((u64::MAX, 0), |(_, page)| (*page, depth))
    }

    fn leaf_node(&mut self, key: &[u8], value: &[u8]) -> Vec<u8> {
        let room = (self.page_len - 16) / 2 - 2;
        let is_big = 8 + key.len() + value.len() > room;
        let stored = if is_big { self.overflow(value).to_le_bytes().to_vec() } else { value.to_vec() };
        let head = [(value.len() as u32).to_le_bytes(), u32::from(is_big).to_le_bytes()].concat();
        let mut node = [&head[..6], &(key.len() as u16).to_le_bytes(), key, &stored].concat();
        node.resize(node.len().next_multiple_of(2), 0);
        node
    }

    fn overflow(&mut self, value: &[u8]) -> u64 {
        let number = self.next_number();
        let count = (16 + value.len()).div_ceil(self.page_len);
        let mut pages = header(number, 4);
        pages.extend_from_slice(&(count as u32).to_le_bytes());
        pages.extend_from_slice(value);
        pages.resize(count * self.page_len, 0);
        self.pages.extend(pages);
        number
    }

    /// As many pages as it takes; the first key and the number of each.
    fn pages_of(&mut self, kind: u16, nodes: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<(Vec<u8>, u64)> {
        let (mut made, mut now) = (Vec::new(), Vec::<(Vec<u8>, Vec<u8>)>::new());
        for node in nodes {
            let used: usize = now.iter().map(|(_, node)| node.len() + 2).sum();
            if 16 + used + node.1.len() + 2 > self.page_len {
                made.push(self.page(kind, &std::mem::take(&mut now)));
            }
            now.push(node);
        }
        if !now.is_empty() {
            made.push(self.page(kind, &now));
        }
        made
    }

    fn page(&mut self, kind: u16, nodes: &[(Vec<u8>, Vec<u8>)]) -> (Vec<u8>, u64) {
        let number = self.next_number();
        let (mut page, mut upper, mut offsets) = (vec![0; self.page_len], self.page_len, Vec::new());
        for (_, node) in nodes {
            upper -= node.len();
            page[upper..upper + node.len()].copy_from_slice(node);
            offsets.extend_from_slice(&(upper as u16).to_le_bytes());
        }
        let mut head = header(number, kind);
        head.extend_from_slice(&(16 + offsets.len() as u16).to_le_bytes());
        head.extend_from_slice(&(upper as u16).to_le_bytes());
        head.extend_from_slice(&offsets);
        page[..head.len()].copy_from_slice(&head);
        self.pages.extend(page);
        (nodes[0].0.clone(), number)
    }

    fn next_number(&self) -> u64 {
        2 + (self.pages.len() / self.page_len) as u64
    }

    fn finish(self, root: u64, depth: u16) -> Vec<u8> {
        let mut file = Vec::new();
        for number in 0..2_u64 {
            let mut meta = header(number, 8);
            meta.extend_from_slice(&[0; 4]);
            meta.extend_from_slice(&0xBEEF_C0DE_u32.to_le_bytes());
            meta.extend_from_slice(&1_u32.to_le_bytes());
            meta.extend_from_slice(&[0; 16]);
            meta.extend(record(self.page_len as u32, 0, u64::MAX));
            meta.extend(record(0, depth, root));
            meta.extend_from_slice(&(self.next_number() - 1).to_le_bytes());
            meta.extend_from_slice(&number.to_le_bytes());
            meta.resize(self.page_len, 0);
            file.extend(meta);
        }
        file.extend(self.pages);
        file
    }
}

fn header(number: u64, flags: u16) -> Vec<u8> {
    [&number.to_le_bytes()[..], &[0; 2], &flags.to_le_bytes()].concat()
}

fn record(pad: u32, depth: u16, root: u64) -> Vec<u8> {
    [&pad.to_le_bytes()[..], &[0; 2], &depth.to_le_bytes(), &[0; 32], &root.to_le_bytes()].concat()
}
