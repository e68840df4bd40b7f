import {
  type AuthMethod,
  type ClientContext,
  type InitializeResponse,
  methods,
  type McpServer as ProtocolServer,
  RequestError,
} from '@agentclientprotocol/sdk';
import { acpMessages } from '../../src/bounds/sandbox.ts';
import { type McpServer, transportOf } from '../../src/suite/mcp-server.ts';

/** The protocol's code for an agent that wants to be authenticated first. */
const authRequiredCode = -32000;

interface SessionParts {
  workspace: string;
  servers: Readonly<Record<string, McpServer>>;
}

/**
 * Opens a session with the tool servers; resolves with its id. If the agent asks for authentication, it is
 * asked to use the key in its environment.
 */
export async function newSession(
  agent: ClientContext,
  { agentCapabilities, authMethods = [] }: InitializeResponse,
  { workspace, servers }: SessionParts,
): Promise<string> {
  for (const [name, server] of Object.entries(servers)) {
    const transport = transportOf(server);
    if (transport !== 'stdio' && agentCapabilities?.mcpCapabilities?.[transport] !== true)
      throw new Error(`it cannot speak ${transport} to the tool server ${name}`);
  }
  const mcpServers = Object.entries(servers).map(([name, server]) => protocolServer(name, server));
  const open = () => agent.request(methods.agent.session.new, { cwd: workspace, mcpServers });
  const { sessionId } = await open().catch(async (error: unknown) => {
    if (!(error instanceof RequestError) || error.code !== authRequiredCode) throw error;
    await agent.request(methods.agent.authenticate, { methodId: keyMethod(authMethods) });
    return open();
  });
  if (sessionId.length > acpMessages.bytes.id) throw new Error('its session has a name that is too long');
  return sessionId;
}

/** The method that uses a key. Others ask a person. */
function keyMethod(offered: readonly AuthMethod[]): string {
  const method = offered.find(({ id, name }) => /key/i.test(id) || /key/i.test(name));
  if (method) return method.id;
  const ids = offered.map(({ id }) => id).join(', ');
  throw new Error(`it asks for a login, and offers no login with a key: ${ids}`);
}

function protocolServer(name: string, server: McpServer): ProtocolServer {
  if ('url' in server) {
    const headers = pairs(server.headers ?? {});
    return { type: transportOf(server) === 'sse' ? 'sse' : 'http', name, url: server.url, headers };
  }
  return { name, command: server.command, args: server.args, env: pairs(server.env) };
}

function pairs(values: Readonly<Record<string, string>>) {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}
