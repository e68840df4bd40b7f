import { z } from 'zod';
import { isHostPattern } from './hosts/host-pattern.ts';
import { McpServers } from './mcp-server.ts';
import { NonEmpty } from './text-source.ts';

/** The schema of `agent:`, for a case or for one of its steps. */

export const CaseHosts = z
  .array(z.string().refine(isHostPattern, 'expected a host such as registry.example or *.example'))
  .describe(
    'The only hosts that the agent may reach. `hosts` of the sandbox must permit all of them. [] for none.',
  );

export const AgentSource = z
  .strictObject({
    user: NonEmpty.optional().describe("Default: the environment's user."),
    mcpServers: McpServers.optional().describe('Tool servers for the harness, besides those of the profile.'),
    skills: z
      .string()
      .startsWith('/', 'expected an absolute path in the sandbox')
      .optional()
      .describe('A folder in the sandbox with skills: folders, each with a SKILL.md.'),
    hosts: CaseHosts.optional(),
  })
  .describe('What the agent that works on the case gets. Local.');
export type AgentSource = z.infer<typeof AgentSource>;
