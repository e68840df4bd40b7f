import type { Wire } from '../suite/model-config.ts';
import { isFreeForm } from './member-names.ts';
import { GatewayRefusal } from './room.ts';
import type { ServedModel } from './served-model.ts';
import { isNothing, isObject, type JsonObject, list, member, shortText } from './wires/lenient.ts';
import type { Accepted } from './wires/wire-descriptor.ts';
import { hostedMembers, knownMembers, wireTable } from './wires/wire-table.ts';

/**
 * Throws a {@link GatewayRefusal} for a request with a member that this gateway does not know, because such a
 * member may select another model or open a way out of the sandbox. Also refuses a request that makes the
 * provider work outside the conversation, unless the model's configuration allows it.
 */
export function checkMembers(
  body: JsonObject,
  wire: Wire,
  { name, config }: Pick<ServedModel, 'name' | 'config'>,
): void {
  const { accepted, hostedTool, names, providerSide: ownJudge } = wireTable[wire].requests;
  const isKnown = (member: string) =>
    names
      ? accepted.members.has(member) || accepted.hosted.has(member)
      : knownMembers.has(member) || hostedMembers.has(member);
  const unknown = Object.keys(body).find(
    (member) => !isKnown(member) && !config.requestMembers.includes(member) && !isNothing(body[member]),
  );
  if (unknown !== undefined) {
    const shown = JSON.stringify(unknown.slice(0, 100));
    throw new GatewayRefusal(
      400,
      'MEMBER_UNKNOWN',
      `${shown} is not a request member that Offsite knows. If the model's server accepts it, ` +
        `add it to \`requestMembers\` of the model ${name} in offsite.yaml`,
    );
  }
  if (config.hostedTools === 'allow') return;
  const hosted = ownJudge ? ownJudge(body) : providerSide(body, accepted, hostedTool);
  if (hosted === undefined) return;
  throw new GatewayRefusal(
    400,
    'HOSTED_TOOL_DENIED',
    `${hosted} would run at the model's provider, outside the sandbox. ` +
      `To allow it, set \`hostedTools: allow\` for the model ${name} in offsite.yaml`,
  );
}

/** How a wire checks one tool: returns its name for messages if it runs at the provider. */
type ToolCheck = (tool: unknown) => string | undefined;

/** Members that hold the conversation, as one value or as a list. */
const conversational: ReadonlySet<string> = new Set(['content', 'input', 'output', 'system']);

/** Types of sources whose bytes are in the request itself. */
const inlineSources: ReadonlySet<unknown> = new Set(['base64', 'text', 'content']);

const address = /ur[il]s?$/;

/**
 * The first thing in a request that its provider would do outside the conversation, named for messages: run a
 * tool, fetch an address, use stored content. Anything unknown counts as such.
 */
function providerSide(body: JsonObject, wire: Accepted, hostedTool: ToolCheck): string | undefined {
  for (const name of hostedMembers) if (!isNothing(body[name])) return name;
  return inObject(body, 1);

  function inObject(object: JsonObject, level: number): string | undefined {
    for (const [name, value] of Object.entries(object)) {
      if (value === null || isFreeForm(name, level)) continue;
      const found = ofMember(name, value) ?? within(value, level + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** `level` counts nesting as member-names.ts does, including lists. */
  function within(value: unknown, level: number): string | undefined {
    if (isObject(value)) return inObject(value, level);
    for (const element of list(value)) {
      const found = within(element, level + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  function ofMember(name: string, value: unknown): string | undefined {
    if (name === 'tools') return inTools(value);
    if (name === 'source' && isObject(value) && !inlineSources.has(value.type))
      return 'a source outside the request';
    if (name === 'file_id') return 'a file that is stored at the provider';
    if (address.test(name)) return [value].flat().every(isInline) ? undefined : 'an address to fetch';
    if (conversational.has(name)) return inConversation(name, [value].flat());
    return undefined;
  }

  function inTools(tools: unknown): string | undefined {
    if (!Array.isArray(tools)) return 'tools of an unknown shape';
    for (const tool of tools) {
      const other = isObject(tool) && Object.keys(tool).find((name) => !wire.toolMembers.has(name));
      if (other) return `the tool member ${JSON.stringify(other.slice(0, 100))}`;
      const hosted = hostedTool(tool);
      if (hosted !== undefined) return `the tool ${hosted}`;
    }
    return undefined;
  }

  function inConversation(name: string, parts: unknown[]): string | undefined {
    for (const part of parts) {
      if (typeof part === 'string' || (isObject(part) && wire.parts.has(part.type))) continue;
      // A shell's output has no type, and a message among other items needs none.
      const untyped = isObject(part) && part.type === undefined;
      if (untyped && (name === 'output' || (name === 'input' && typeof part.role === 'string'))) continue;
      return `a part of the type ${shortText(member(part, 'type')) ?? 'unknown'}`;
    }
    return undefined;
  }
}

/** An object counts as inline, because the address inside it is checked separately. */
function isInline(value: unknown): boolean {
  if (typeof value === 'string') return /^data:/i.test(value);
  return value === null || isObject(value);
}
