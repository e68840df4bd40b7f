import type { ModelError } from '../wires/model-error.ts';
import { isEssential, type RequestOption } from './request-options.ts';

/**
 * The options of a request that a refusal names, in the order in which to try without them: those at a path
 * that the server names, then forms of the conversation that its words are about, options that its words
 * quote, those that its words contain, and those of a topic that its words are about. Servers write names in
 * many ways, so case and separators do not count.
 */
export function namedOptions(
  { parameters, message = '' }: ModelError,
  options: readonly RequestOption[],
): RequestOption[] {
  const atPaths = parameters.flatMap((path) => atPath(path, options));
  // What a template says about the conversation contains words that are names of options too.
  const forms = options.filter(({ refusal }) => refusal?.test(message));
  const quotedOf = (some: readonly RequestOption[]) =>
    [...message.matchAll(/["'`]([\w.[\]-]{1,100})["'`]/g)].flatMap(([, name = '']) =>
      some.filter((option) => namesOf(option).some((one) => folded(one) === folded(name))),
    );
  // A server that names what the request means is only about its annotations, whatever its words contain.
  if (atPaths.length === 0 && parameters.some(isOfEssential))
    return [...new Set([...forms, ...quotedOf(options.filter(({ path }) => path.includes('[]')))])];
  const all = [...atPaths, ...forms, ...quotedOf(options), ...contained(message, options)];
  return [...new Set([...all, ...ofTopic(message, options)])];
}

function isOfEssential(path: string): boolean {
  return isEssential(segmentsOf(path)[0] ?? '');
}

/** The option at a path of the request, or the one that the path leads into. */
function atPath(path: string, options: readonly RequestOption[]): RequestOption[] {
  const named = segmentsOf(path).map(folded);
  const ofPath = options.filter((option) => {
    const own = segmentsOf(option.path).map(folded);
    const [top = ''] = own;
    // A member of a tool's schema may have the name of an option.
    if (own.length === 1 && named.length > 1 && named[0] !== top && isEssential(segmentsOf(path)[0] ?? ''))
      return false;
    return [own, ...option.aliases.map((alias) => [folded(alias)])].some((names) => isIn(names, named));
  });
  // The longest path that fits is the most exact.
  const longest = Math.max(...ofPath.map((option) => segmentsOf(option.path).length), 0);
  return ofPath.filter((option) => segmentsOf(option.path).length === longest);
}

/** Whether all names are in `path`, in their order. Servers put names of their own types between them. */
function isIn(names: readonly string[], path: readonly string[]): boolean {
  let next = 0;
  for (const segment of path) if (segment === names[next]) next += 1;
  return next === names.length;
}

function segmentsOf(path: string): string[] {
  return path.split(/[.[\]/]+/).filter((segment) => segment !== '' && !/^\d+$/.test(segment));
}

function folded(name: string): string {
  return name.toLowerCase().replace(/[^a-z\d]/g, '');
}

function namesOf({ path, name, aliases }: RequestOption): string[] {
  return [path, name, ...aliases];
}

function contained(message: string, options: readonly RequestOption[]): RequestOption[] {
  return options
    .map((option) => ({ option, at: positionIn(message, option) }))
    .filter(({ at }) => at !== -1)
    .toSorted((one, other) => one.at - other.at)
    .map(({ option }) => option);
}

function positionIn(message: string, { name, aliases }: RequestOption): number {
  const found = [name, ...aliases].map((one) => {
    const parts = one.replace(/([a-z])([A-Z])/g, '$1_$2').split(/[^a-zA-Z\d]+/);
    return message.search(new RegExp(`(?<![\\w])${parts.join('[\\s_-]*')}(?![\\w])`, 'i'));
  });
  const positions = found.filter((at) => at !== -1);
  return positions.length === 0 ? -1 : Math.min(...positions);
}

/** What servers call by another word than the member that asks for it. */
const topics: readonly { words: RegExp; paths: RegExp }[] = [
  {
    words: /\b(think(ing)?|reason(ing)?|thoughts?|effort)\b/i,
    paths: /think|reason|effort/i,
  },
  { words: /\bparallel\b|\bsingle tool/i, paths: /parallel/i },
  {
    words: /\b(json|schema|structured|guided|grammar)\b/i,
    paths: /response_?(format|mime|schema|json)|(^|\.)format$/i,
  },
  { words: /\btool\b.*\bcho(ice|ose)|\bforce/i, paths: /^tool_choice$/ },
  {
    words: /\bcompletion\b|(output|new|generated?)[ _]tokens\b/i,
    paths: /^(generationConfig\.)?max_?(completion_?|output_?)?tokens$/i,
  },
];

function ofTopic(message: string, options: readonly RequestOption[]): RequestOption[] {
  const told = topics.filter(({ words }) => words.test(message));
  const found = options.filter(({ path }) => told.some(({ paths }) => paths.test(path)));
  // What asks for it comes before what the conversation has of it.
  return found.toSorted((one, other) => Number(one.path.includes('[]')) - Number(other.path.includes('[]')));
}
