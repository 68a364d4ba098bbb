//! What is taken of an archive, as the user has chosen: members by their extensions, and what becomes of them by its
//! names.
//!
//! An extension that is left out is ignored wherever it comes, as if the archive had no such members. What is taken of
//! the others is decided by name: an attribute of `json`, or the document itself.

use grainstore_format::{Attribute, Field, Metadata, Schema};

use super::infer::FirstSamples;
use super::shape::{MemberSlot, SlotAttributes, TarShape};
use crate::{Chosen, Remark};

/// An attribute or a field, and the extensions that it comes from.
struct Item {
    name: String,
    extensions: Vec<String>,
}

impl FirstSamples {
    /// The shape without what is left out.
    ///
    /// # Errors
    /// Where a name is unknown, no field is left, or no schema can be made.
    pub(super) fn shape_of(mut self, chosen: &Chosen) -> Result<TarShape, Remark> {
        let all = self.shape()?;
        if chosen.is_all() {
            return Ok(all);
        }
        let seen: Vec<String> =
            self.extensions().iter().filter_map(|one| String::from_utf8(one.clone()).ok()).collect();
        let items = all.items(&seen);
        let names = items.iter().map(|item| item.name.as_str());
        chosen.check("member or attribute", names.chain(seen.iter().map(String::as_str)))?;
        let is_wanted = |extension: &String| {
            let is_source = |item: &&Item| item.extensions.contains(extension);
            chosen.only.is_empty()
                || chosen.only.contains(extension)
                || items.iter().filter(is_source).any(|item| chosen.only.contains(&item.name))
        };
        let ignored = seen.iter().filter(|one| chosen.exclude.contains(one) || !is_wanted(one));
        let ignored: Vec<Vec<u8>> = ignored.map(|one| one.clone().into_bytes()).collect();
        self.forget(&ignored);
        if self.is_empty() {
            return Err("every member is left out".into());
        }
        // Without the others, what stays may become something else: a lone extension is a field of its own name.
        let shape = self.shape()?.chosen(chosen, &seen)?;
        Ok(TarShape { ignored, is_mapped: shape.is_mapped || !chosen.only.is_empty(), ..shape })
    }
}

impl TarShape {
    /// The attributes, then the fields.
    fn items(&self, seen: &[String]) -> Vec<Item> {
        let slots = |is_from: &dyn Fn(&MemberSlot) -> bool| -> Vec<String> {
            let from = |extension: &&String| {
                self.slots.iter().any(|slot| is_from(slot) && slot.takes.takes(Some(extension.as_bytes())))
            };
            seen.iter().filter(from).cloned().collect()
        };
        let schema = &self.metadata.schema;
        let attributes = schema.attributes().iter().enumerate().map(|(number, attribute)| Item {
            name: attribute.name.clone(),
            extensions: slots(&|slot| slot.values.has(number)),
        });
        let fields = schema.fields().iter().enumerate().map(|(number, field)| Item {
            name: field.name.clone(),
            extensions: slots(&|slot| slot.field == Some(number)),
        });
        attributes.chain(fields).collect()
    }

    /// The shape without the attributes and fields that are not taken.
    fn chosen(self, chosen: &Chosen, seen: &[String]) -> Result<Self, Remark> {
        let schema = &self.metadata.schema;
        let items = self.items(seen);
        let is_taken = |item: &Item| {
            let is_named = |names: &[String]| {
                names.contains(&item.name) || item.extensions.iter().any(|extension| names.contains(extension))
            };
            (chosen.only.is_empty() || is_named(&chosen.only)) && !chosen.exclude.contains(&item.name)
        };
        let taken: Vec<bool> = items.iter().map(is_taken).collect();
        let (takes_attribute, takes_field) = taken.split_at(schema.attributes().len());
        let kept = |takes: &[bool], number: usize| takes[..number].iter().filter(|&&one| one).count();
        let attributes = schema.attributes().iter().zip(takes_attribute).filter(|(_, taken)| **taken);
        let attributes: Vec<Attribute> = attributes.map(|(attribute, _)| attribute.clone()).collect();
        let fields = schema.fields().iter().zip(takes_field).filter(|(_, taken)| **taken);
        let fields: Vec<Field> = fields.map(|(field, _)| field.clone()).collect();
        if fields.is_empty() {
            return Err("no field is left of the samples, and a dataset needs one".into());
        }
        let slot = |slot: &MemberSlot| {
            let field = slot.field.filter(|&field| takes_field[field]).map(|field| kept(takes_field, field));
            let values = match &slot.values {
                SlotAttributes::Label if takes_attribute[0] => SlotAttributes::Label,
                SlotAttributes::Label | SlotAttributes::None => SlotAttributes::None,
                SlotAttributes::Document(members, first) | SlotAttributes::PartOfDocument(members, first) => {
                    let taken = members.iter().zip(&takes_attribute[*first..]).filter(|(_, taken)| **taken);
                    let taken: Vec<Attribute> = taken.map(|(member, _)| member.clone()).collect();
                    let first = kept(takes_attribute, *first);
                    match (taken.is_empty(), taken.len() == members.len() && field.is_some() == slot.field.is_some()) {
                        (true, _) => SlotAttributes::None,
                        (_, true) => SlotAttributes::Document(taken, first),
                        (_, false) => SlotAttributes::PartOfDocument(taken, first),
                    }
                }
            };
            MemberSlot { takes: slot.takes.clone(), field, values }
        };
        let slots: Vec<MemberSlot> = self.slots.iter().map(slot).collect();
        let schema = Schema::new(attributes, fields).map_err(|error| error.to_string())?;
        let metadata = Metadata { schema, user: self.metadata.user.clone() };
        Ok(Self { metadata, slots, ..self })
    }
}

impl SlotAttributes {
    /// Whether the attribute of this number is in the member.
    fn has(&self, number: usize) -> bool {
        match self {
            Self::None => false,
            Self::Label => number == 0,
            Self::Document(members, first) | Self::PartOfDocument(members, first) => {
                (*first..*first + members.len()).contains(&number)
            }
        }
    }
}
