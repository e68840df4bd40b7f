import { allWires } from '../gateway/wires/wire-table.ts';
import { type McpServer, transportOf } from '../suite/mcp-server.ts';
import type { HarnessContext, ModelAccess } from './runner.ts';

/** The environment of a profile's `run` script: the model's, the tool servers', and the trial's own. */
export function programEnvironment({ model, profile, env }: HarnessContext): Record<string, string> {
  return { ...(model && modelEnvironment(model)), ...serverEnvironment(profile), ...env };
}

/**
 * The model's address and token in the variables that most clients read. The profile's `env` overrides them.
 */
function modelEnvironment({ name, origin, token }: ModelAccess): Record<string, string> {
  const ofClients = allWires.map(({ variables }) => variables(origin, token));
  return Object.assign({ OFFSITE_MODEL: name }, ...ofClients);
}

/**
 * The tool servers as most clients have them in a file:
 * `{"mcpServers": {NAME: {command, args, env} | {type, url}}}`.
 */
function serverEnvironment({ mcpServers }: HarnessContext['profile']): Record<string, string> {
  const servers = Object.entries(mcpServers).map(([name, server]) => [name, mcpEntry(server)]);
  if (servers.length === 0) return {};
  return { OFFSITE_MCP_SERVERS: JSON.stringify({ mcpServers: Object.fromEntries(servers) }) };
}

/** A tool server as most clients have it: `{command, args, env}` or `{type, url, headers}`. */
export function mcpEntry(server: McpServer): unknown {
  if (!('url' in server)) return server;
  const { url, headers } = server;
  return { type: transportOf(server), url, ...(headers && { headers }) };
}
