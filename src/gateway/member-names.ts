import { Refusal } from './refusal.ts';
import { hostedMembers, knownMembers } from './wires/wire-table.ts';

/**
 * Members whose values decide nothing: what a tool, a schema or the client itself defines. In them any names
 * may stand.
 */
const freeForm: ReadonlySet<string> = new Set([
  'input',
  'parameters',
  'input_schema',
  'output_schema',
  'input_examples',
  'schema',
  'arguments',
  'env',
  'metadata',
  'client_metadata',
  'logit_bias',
  'chat_template_kwargs',
  'annotations',
  'citations',
]);

/** Members that the gateway judges by, below the first level. */
const deciding = [
  'type',
  'role',
  'content',
  'input',
  'output',
  'system',
  'tools',
  'function',
  'custom',
  'environment',
  'execution',
  'source',
  'url',
  'file_id',
  'image_url',
  'video_url',
  'audio_url',
  'file_url',
  'server_url',
  'include_usage',
];

/** By how the most lenient reader compares names, the one way in which each is written. */
const written: ReadonlyMap<string, string> = new Map(
  [...deciding, ...knownMembers, ...hostedMembers].map((name) => [folded(name), name]),
);

/** Every reader reads such names alike. */
const plain = /^(?!__)[\w$.@:/-]{1,200}$/;

/** `level` is 1 for members of the whole document: there `input` is the conversation. */
export function isFreeForm(name: string, level: number): boolean {
  return freeForm.has(name) && !(name === 'input' && level === 1);
}

/**
 * Reads a name, quotes and all, and tells what to compare it by: where something is decided, without the
 * differences that some servers overlook (case, camel case). Throws a {@link Refusal} for a name there that
 * is not plain, or that such a server takes for one that decides.
 */
export function nameOf(
  bytes: Buffer,
  start: number,
  end: number,
  isFree: boolean,
): { name: string; folded: string } {
  const name = readName(bytes, start, end);
  if (isFree) return { name, folded: name };
  if (!plain.test(name)) throw refused(`the body has a member ${shown(name)}, which is no plain name`);
  const known = folded(name);
  const usual = written.get(known);
  if (usual !== undefined && usual !== name)
    throw refused(`the body has ${shown(name)}, which some servers take for ${JSON.stringify(usual)}`);
  return { name, folded: known };
}

function readName(bytes: Buffer, start: number, end: number): string {
  try {
    // One string holds no other values, so it needs no weighing.
    return String(JSON.parse(bytes.toString('utf8', start, end)));
  } catch (cause) {
    throw new Refusal(400, 'BODY_NOT_JSON', 'the body is not JSON', { cause });
  }
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

function refused(message: string): Refusal {
  return new Refusal(400, 'BODY_INVALID', message);
}
