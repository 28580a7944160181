"""lighteval's models behind the core's Model protocol, and the core's models behind lighteval's."""
