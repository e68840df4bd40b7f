import { splitAddress } from '../../suite/model-config.ts';
import { mayBeKey } from '../../suite/variables.ts';

/** What is wrong with the address of a model's API; undefined if nothing is. */
export function checkAddress(given: string): string | undefined {
  const url = URL.parse(given);
  if (!url || !['http:', 'https:'].includes(url.protocol))
    return 'expected an address such as http://127.0.0.1:8000/v1';
  const secret = [...url.searchParams].some(([name, value]) => isSecret(name, value));
  // The message does not repeat the address, which may contain a key.
  if (url.username || url.password || url.hash || secret)
    return 'expected an address without a user, a fragment and a key: the key goes into a variable';
  return undefined;
}

/** The base URL of an API, and the query for it, in an address as a person copies it. */
export function readAddress(given: string): { baseUrl: string; query: Record<string, string> } {
  const { origin, pathname, searchParams } = new URL(given);
  const query = Object.fromEntries(searchParams);
  // The path stays as it was given, but for what belongs to one request.
  return { baseUrl: splitAddress(`${origin}${pathname}`.replace(/\/+$/, '')).base, query };
}

/** Reads `name: value` or `name=value`. Undefined if it is neither. */
export function readPair(given: string, separator: ':' | '='): [string, string] | undefined {
  const at = given.indexOf(separator);
  const name = given.slice(0, at).trim();
  return at === -1 || !/^[\w.-]+$/.test(name) ? undefined : [name, given.slice(at + 1).trim()];
}

/** Whether a header or a parameter carries a key, which no file may have. */
export function isSecret(name: string, value: string): boolean {
  const named = /(^|[-_.])(key|api-?key|token|secret|sig(nature)?|password|auth(orization)?|cookie)$/i;
  return named.test(name) || mayBeKey(value);
}

/** Where servers of models listen by default. */
export const usualPorts: readonly number[] = [
  11_434, // Ollama
  8_080, // llama.cpp, TGI
  8_000, // vLLM
  1_234, // LM Studio
  5_001, // KoboldCpp
  30_000, // SGLang
  4_000, // LiteLLM
];
