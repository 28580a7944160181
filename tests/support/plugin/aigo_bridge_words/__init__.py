"""An example plug-in for aigo-bridge: one scorer, solver, metric, format and verb."""
