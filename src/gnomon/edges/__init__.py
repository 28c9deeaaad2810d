"""How the outside reaches us: http, ws, mcp, web. Edges know services and not each other."""
