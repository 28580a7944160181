"""lighteval models as aigo-bridge models, and aigo-bridge models as lighteval models."""
