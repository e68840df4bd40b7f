import { z } from 'zod';
import { NonEmpty } from './text-source.ts';

/** A tool server for the harness: a program in the sandbox, or an address that the sandbox can reach. */
export const McpServer = z.union(
  [
    z.strictObject({
      command: NonEmpty.describe('A program in the sandbox that speaks over its standard streams.'),
      args: z.array(z.string()).default([]).describe('Arguments of the program.'),
      env: z.record(z.string(), z.string()).default({}).describe('Environment variables of the program.'),
    }),
    z.strictObject({
      url: z.url().describe('The address of a server that the sandbox can reach.'),
      transport: z
        .enum(['http', 'sse'])
        .optional()
        .describe('How it is spoken to: streamable HTTP, or the older server-sent events. Default: http.'),
      headers: z.record(z.string(), z.string()).optional().describe('Sent with each request.'),
    }),
  ],
  { error: 'expected {command, args, env} or {url, transport, headers}' },
);
export type McpServer = z.infer<typeof McpServer>;

/** By name. */
export const McpServers = z.record(
  z.string().regex(/^[\w-]+$/, 'expected a name of letters, digits, _ and -'),
  McpServer,
);

/** How a harness speaks to a tool server: over the streams of a program that it starts, or to a URL. */
export type McpTransport = 'stdio' | 'http' | 'sse';

export function transportOf(server: McpServer): McpTransport {
  return 'url' in server ? (server.transport ?? 'http') : 'stdio';
}
