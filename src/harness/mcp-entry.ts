import { type McpServer, transportOf } from '../suite/mcp-server.ts';

/** A tool server as most clients have it: `{command, args, env}` or `{type, url, headers}`. */
export function mcpEntry(server: McpServer): unknown {
  if (!('url' in server)) return server;
  const { url, headers } = server;
  return { type: transportOf(server), url, ...(headers && { headers }) };
}
