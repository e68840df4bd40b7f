import type { ModelExchange } from '../../gateway/gateway.ts';
import { isObject, list, parsed } from '../../gateway/wires/lenient.ts';
import type { Cause } from '../../record/cause.ts';

/** As many characters of a server's name as a harness keeps in the name of a tool, however long both are. */
const keptCharacters = 16;

/**
 * What the agent's model was offered first. Most harnesses begin although a tool server did not start, and do
 * not report it, or only in words. Then the agent did not have the tools that were meant for it.
 *
 * Only the request with tools that began first counts. It is sent before the agent can do anything, such as
 * end a server or send a request of its own.
 */
export class FirstOffer {
  readonly #servers: readonly string[];
  #startedAt = Number.POSITIVE_INFINITY;
  #lacking: readonly string[] = [];

  /** @param servers the names of the tool servers of the harness */
  constructor(servers: readonly string[]) {
    this.#servers = servers;
  }

  add({ role, startedAt }: Pick<ModelExchange, 'role' | 'startedAt'>, request: Buffer): void {
    if (this.#servers.length === 0 || role !== 'agent' || startedAt >= this.#startedAt) return;
    const text = request.toString();
    const body = parsed(text);
    const tools = list(isObject(body) ? body.tools : undefined);
    // Requests for a title, for example, offer none.
    if (isObject(body) && tools.length === 0) return;
    this.#startedAt = startedAt;
    const offered = letters(JSON.stringify(tools));
    // What cannot be read says nothing.
    this.#lacking = isObject(body) ? this.#servers.filter((name) => !isNamed(name, offered, text)) : [];
  }

  /** The tool servers of which no tool was offered. None if nothing was. */
  get lacking(): readonly string[] {
    return this.#lacking;
  }
}

/**
 * Harnesses put a server's name before those of its tools, each in its own way. Tools that are loaded on
 * demand are named in a message, in one way.
 */
function isNamed(server: string, offered: string, text: string): boolean {
  return offered.includes(letters(server).slice(0, keptCharacters)) || text.includes(`mcp__${server}__`);
}

function letters(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** Why the agent's work says nothing about it: it began without a tool server. Undefined if it did not. */
export function lackingCause(
  harness: string,
  offer: FirstOffer | undefined,
  lastOutput: string | undefined,
): Cause | undefined {
  const { lacking = [] } = offer ?? {};
  if (lacking.length === 0) return undefined;
  const of =
    lacking.length === 1 ? `the tool server ${lacking[0]}` : `the tool servers ${lacking.join(', ')}`;
  return {
    kind: 'harness',
    phase: 'harness',
    message: `${harness} offered its model no tool of ${of} when it began: either it did not start, or it has no tools`,
    ...(lastOutput !== undefined && { output: lastOutput }),
  };
}
