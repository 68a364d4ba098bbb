//! Groups of neighbouring members: each group is one sample.

use std::path::Path;

use super::bytes::Bytes;
use super::members::{Damage, TarMember, TarMembers};
use super::shape::{Grouping, Placed, TarShape};
use crate::{Bad, Reach, RecordLocation, Remark};

/// The members of one sample.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: Vec<u8>,
    /// Offset of its first header.
    pub(super) position: u64,
    /// Where its last payload ends.
    pub(super) end: u64,
    /// The payload of each slot's member.
    pub(super) runs: Vec<Option<ByteRange>>,
    /// Why it cannot be read.
    pub(super) bad: Option<BadGroup>,
}

/// Where a payload is in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRange {
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// Why a sample cannot be read.
#[derive(Debug)]
pub(super) struct BadGroup {
    location: RecordLocation,
    why: Remark,
    pub(super) reach: Reach,
}

/// What the visitor of a group's members decides for each.
pub(super) enum Take {
    /// Continue with the next member.
    Continue,
    /// The sample cannot be read.
    Bad(Remark),
    /// This member completes the group.
    Last,
    /// Nothing after it can be read.
    Stop(Remark),
}

/// The groups from a header on.
pub(super) struct Groups<'a, B> {
    shape: &'a TarShape,
    members: TarMembers<B>,
    /// A member that was read already and belongs to the next group.
    ahead: Option<TarMember>,
    damage: Option<Damage>,
    is_stopped: bool,
}

impl Group {
    fn new(key: &[u8], position: u64, slot_count: usize) -> Self {
        Self { key: key.to_vec(), position, end: position, runs: vec![None; slot_count], bad: None }
    }

    /// Whether every slot has a member.
    pub(super) fn is_full(&self) -> bool {
        self.runs.iter().all(Option::is_some)
    }

    /// Records why the sample cannot be read; the first reason stays.
    pub(super) fn set_bad(&mut self, member: &TarMember, why: impl Into<Remark>, reach: Reach) {
        if self.bad.is_none() {
            let location = RecordLocation { record: None, offset: Some(member.start), name: Some(member.name.clone()) };
            self.bad = Some(BadGroup { location, why: why.into(), reach });
        }
    }

    /// Stores a member in its slot.
    fn put(&mut self, slot: usize, member: &TarMember) {
        self.end = member.data.saturating_add(member.len);
        match &mut self.runs[slot] {
            Some(first) => {
                let first = first.offset;
                let second = member.data;
                let why = format!("its sample has two members of this kind, at bytes {first} and {second}");
                self.set_bad(member, why, Reach::Sample);
            }
            run => *run = Some(ByteRange { offset: member.data, len: member.len }),
        }
    }
}

impl BadGroup {
    pub(super) fn into_bad(self, path: &Path) -> Bad {
        Bad::new(path, self.location, self.why, self.reach)
    }
}

impl From<Damage> for BadGroup {
    fn from(Damage { offset, name, why, .. }: Damage) -> Self {
        Self {
            location: RecordLocation { record: None, offset: Some(offset), name },
            why: why.into(),
            reach: Reach::Rest,
        }
    }
}

impl<'a, B: Bytes> Groups<'a, B> {
    pub(super) fn new(shape: &'a TarShape, bytes: B, position: u64) -> Self {
        Self { shape, members: TarMembers::new(bytes, position), ahead: None, damage: None, is_stopped: false }
    }

    pub(super) fn bytes(&mut self) -> &mut B {
        self.members.bytes()
    }

    /// The next group. `take` is called for every member that has a slot, before the next header is read. After damage,
    /// a bad group is returned and then no other.
    pub(super) fn next(&mut self, mut take: impl FnMut(&mut B, &Group, usize, ByteRange) -> Take) -> Option<Group> {
        let mut group: Option<Group> = None;
        while !self.is_stopped {
            let member = match self.member() {
                Ok(Some(member)) => member,
                Ok(None) if group.is_none() && !self.members.is_done() => continue,
                Ok(None) => break,
                Err(damage) => return Some(self.stop(group, damage)),
            };
            let (key, slot) = match self.shape.place(&member.name) {
                Placed::Ignored => continue,
                Placed::In { key, slot } => (key, Ok(slot)),
                Placed::Stray { key, why } => (key, Err(why)),
            };
            if group.as_ref().is_some_and(|group| !self.joins(group, key)) {
                self.ahead = Some(member);
                break;
            }
            let group = group.get_or_insert_with(|| Group::new(key, member.start, self.shape.slots.len()));
            match member.unusable.clone().map_or(slot, |why| Err(why.into())) {
                Ok(slot) if self.admit(group, slot, &member, &mut take) => break,
                Ok(_) => {}
                Err(why) => group.set_bad(&member, why, Reach::Sample),
            }
        }
        group
    }

    /// Adds a member to the group and calls `take`; returns whether the member is the last of the group.
    fn admit(
        &mut self,
        group: &mut Group,
        slot: usize,
        member: &TarMember,
        take: &mut impl FnMut(&mut B, &Group, usize, ByteRange) -> Take,
    ) -> bool {
        group.put(slot, member);
        if group.bad.is_some() {
            return false;
        }
        match take(self.members.bytes(), group, slot, ByteRange { offset: member.data, len: member.len }) {
            Take::Continue => false,
            Take::Last => true,
            Take::Bad(why) => {
                group.set_bad(member, why, Reach::Sample);
                false
            }
            Take::Stop(why) => {
                self.is_stopped = true;
                group.set_bad(member, why, Reach::Rest);
                true
            }
        }
    }

    fn member(&mut self) -> Result<Option<TarMember>, Damage> {
        if let Some(member) = self.ahead.take() {
            return Ok(Some(member));
        }
        if let Some(damage) = self.damage.take() {
            return Err(damage);
        }
        self.members.next()
    }

    fn joins(&self, group: &Group, key: &[u8]) -> bool {
        self.shape.grouping == Grouping::Stems && group.key == key
    }

    /// The group before the damage if it is complete, else a bad group.
    fn stop(&mut self, group: Option<Group>, damage: Damage) -> Group {
        match group {
            Some(group) if !self.cuts(&damage, &group) => {
                self.damage = Some(damage);
                group
            }
            group => {
                self.is_stopped = true;
                let position = group.map_or(damage.position, |group| group.position);
                Group { bad: Some(damage.into()), ..Group::new(&[], position, self.shape.slots.len()) }
            }
        }
    }

    /// Whether the damage may have lost a member of the group.
    fn cuts(&self, damage: &Damage, group: &Group) -> bool {
        if group.bad.is_some() {
            return false;
        }
        match damage.name.as_ref().map(|name| self.shape.place(name)) {
            Some(Placed::In { key, .. } | Placed::Stray { key, .. }) => self.joins(group, key),
            Some(Placed::Ignored) => false,
            None => self.shape.grouping == Grouping::Stems && !group.is_full(),
        }
    }
}
