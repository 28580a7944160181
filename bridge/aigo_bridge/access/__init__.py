"""What of the outside a file of a stranger may reach: folders, addresses, variables; and how much is taken
in.
"""
