import { isObject } from '../wires/lenient.ts';
import type { WireDescriptor } from '../wires/wire-descriptor.ts';
import { allWires, usualWire, versions } from '../wires/wire-table.ts';
import type { Question } from './ask-server.ts';
import { bounded, type ServerModel } from './server-models.ts';

/** A server's list of models, and the first wire whose lists have its form. */
export interface ModelList {
  wire: WireDescriptor;
  models: ServerModel[];
}

/** The first wire of each form. */
const listed = allWires.filter(
  ({ models }, index) => index === allWires.findIndex((other) => other.models === models),
);

/** Reads a list of models in any wire's form. Undefined if the document is none. */
export function readModelList(document: unknown): ModelList | undefined {
  if (!isObject(document)) return undefined;
  // The usual form is the least particular one.
  for (const wire of [...listed.filter((each) => each !== usualWire), usualWire]) {
    const models = wire.models.read(document);
    if (models) return { wire, models: bounded(models) };
  }
  return undefined;
}

/** The questions for the models below a base URL. Each form has its own, with the key in another header. */
export function listQuestions(baseUrl: string): Question[] {
  const version = versions.find((each) => baseUrl.endsWith(`/${each}`)) ?? usualWire.version;
  const own = listed.filter((wire) => wire.version === version);
  return [...new Set([...own, usualWire])].map(({ name: wire, models: { query } }) => ({
    path: query === undefined ? '/models' : `/models?${query}`,
    wire,
  }));
}
