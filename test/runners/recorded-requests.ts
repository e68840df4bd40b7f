import { readdirSync, readFileSync } from 'node:fs';
import { isObject, type JsonObject, list } from '../../src/gateway/wires/lenient.ts';
import type { Wire } from '../../src/suite/model-config.ts';

/** The requests in fixtures/requests/ were sent by the real CLIs, and are shortened. */
export interface RecordedRequest {
  cli: string;
  wire: Wire;
  body: JsonObject;
}

const folder = new URL('fixtures/requests/', import.meta.url);

export function recordedRequests(): RecordedRequest[] {
  return readdirSync(folder)
    .toSorted()
    .map((name) => {
      const [cli = '', wire = ''] = name.split('.');
      return { cli, wire: wire as Wire, body: JSON.parse(readFileSync(new URL(name, folder), 'utf8')) };
    });
}

/** Without what belongs to a machine or a moment, with short texts, and one tool of each form. */
export function compactRequest(body: JsonObject): JsonObject {
  const short = shortened(body) as JsonObject;
  return Array.isArray(short.tools) ? { ...short, tools: fewTools(short.tools) } : short;
}

const longestText = 160;

function shortened(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return isOpaque(name, value) ? value : shortText(value);
  if (Array.isArray(value)) return value.map((one) => shortened(one, name));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shortened(inner, key)]));
}

/** Cut, it would be another image, or no JSON. */
function isOpaque(name: string, value: string): boolean {
  return name === 'data' || name === 'arguments' || name === 'encrypted_content' || value.startsWith('data:');
}

function shortText(text: string): string {
  const plain = text
    .replace(
      /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g,
      '00000000-0000-4000-8000-000000000000',
    )
    .replace(/\b[0-9a-f]{24,}\b/g, '0'.repeat(24))
    .replace(/\b20\d\d-\d\d-\d\d/g, '2000-01-01')
    .replace(/\b(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \w+ \d+, 20\d\d/g, 'Saturday, January 1, 2000')
    .replace(/\b(ses|msg|prt)_[0-9A-Za-z]{8,}/g, '$1_0');
  return plain.length > longestText ? `${plain.slice(0, longestText)}…` : plain;
}

/** Tools of one form differ in names only. Some tools hold others. */
function fewTools(tools: unknown[]): unknown[] {
  const seen = new Set<string>();
  return tools.map(withFewTools).filter((tool) => {
    const form = JSON.stringify(formOf(tool));
    return !seen.has(form) && seen.add(form);
  });
}

function withFewTools(tool: unknown): unknown {
  if (!isObject(tool)) return tool;
  const held = ['functionDeclarations', 'tools'].filter((name) => Array.isArray(tool[name]));
  return { ...tool, ...Object.fromEntries(held.map((name) => [name, fewTools(list(tool[name]))])) };
}

function formOf(tool: unknown): unknown {
  if (!isObject(tool)) return typeof tool;
  const inner = isObject(tool.function) ? tool.function : {};
  return [tool.type, Object.keys(tool).toSorted(), Object.keys(inner).toSorted()];
}
