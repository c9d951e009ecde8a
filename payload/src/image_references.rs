//! The file `image-references` of a release: an ImageStream whose tags are the components.
