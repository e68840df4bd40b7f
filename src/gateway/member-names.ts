import type { Wire } from '../suite/model-config.ts';
import { GatewayRefusal } from './room.ts';
import { words } from './wires/lenient.ts';
import { hostedMembers, knownMembers, wireTable } from './wires/wire-table.ts';

/**
 * Members whose values the gateway does not check: content that a tool, a schema or the client defines. They
 * may contain any names.
 */
const freeForm = words(`
  input parameters input_schema output_schema input_examples schema arguments env metadata
  client_metadata logit_bias chat_template_kwargs annotations citations`);

/** Members below the first level that the gateway judges. */
const deciding = words(`
  type role content input output system tools function custom environment execution source url
  file_id image_url video_url audio_url file_url server_url include_usage`);

/** How the members of a document are judged. */
export interface MemberNames {
  /** `level` is 1 for top-level members. On that level, `input` is the conversation. */
  isFreeForm(name: string, level: number): boolean;
  /** The correct spelling of each name. The key is the form that the most lenient reader compares. */
  written: ReadonlyMap<string, string>;
}

/** The names of all wires that share one list. */
export const commonNames: MemberNames = {
  isFreeForm,
  written: spellings([...deciding, ...knownMembers, ...hostedMembers]),
};

/** The names of a wire's requests. */
export function memberNames(wire: Wire): MemberNames {
  const { names } = wireTable[wire].requests;
  if (!names) return commonNames;
  return { isFreeForm: (name) => names.freeForm.has(name), written: spellings(names.spelled) };
}

function spellings(names: Iterable<string>): ReadonlyMap<string, string> {
  return new Map([...names].map((name) => [folded(name), name]));
}

/**
 * Names that all readers read in the same way. Excludes names such as `__proto__` and `__class__`, which have
 * a meaning in some languages. Includes other names that begin with `__`, because clients send them.
 */
const plain = /^(?!__.*__$)[\w$.@:/-]{1,200}$/;

/** `level` is 1 for top-level members. On that level, `input` is the conversation. */
export function isFreeForm(name: string, level: number): boolean {
  return freeForm.has(name) && !(name === 'input' && level === 1);
}

/**
 * Reads a quoted name and returns the name and its form to compare. Outside free-form members, that form
 * ignores the differences that some servers ignore (case, camel case). Throws a {@link GatewayRefusal} for a
 * name there that is not plain, or that such a server reads as a judged member.
 */
export function nameOf(
  bytes: Buffer,
  start: number,
  end: number,
  isFree: boolean,
  { written }: MemberNames,
): { name: string; folded: string } {
  const name = readName(bytes, start, end);
  if (isFree) return { name, folded: name };
  if (!plain.test(name)) throw refused(`the body has a member ${shown(name)}, which is not a plain name`);
  const known = folded(name);
  const usual = written.get(known);
  if (usual !== undefined && usual !== name)
    throw refused(`the body has ${shown(name)}, which some servers take for ${JSON.stringify(usual)}`);
  return { name, folded: known };
}

function readName(bytes: Buffer, start: number, end: number): string {
  try {
    // A string contains no other values, so its memory need not be estimated.
    return String(JSON.parse(bytes.toString('utf8', start, end)));
  } catch (cause) {
    throw new GatewayRefusal(400, 'BODY_NOT_JSON', 'the body is not JSON', { cause });
  }
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

function refused(message: string): GatewayRefusal {
  return new GatewayRefusal(400, 'BODY_INVALID', message);
}
