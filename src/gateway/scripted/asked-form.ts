import { modelRequests } from '../../bounds/sandbox.ts';
import type { ScriptTurn } from '../../suite/script-file.ts';
import { Losses } from '../translation/losses.ts';
import { isObject, type JsonObject } from '../wires/lenient.ts';
import type { WireDescriptor } from '../wires/wire-descriptor.ts';

type FormAnswer = Pick<ScriptTurn, 'text' | 'calls'>;

/**
 * The answer to a request that demands JSON of a schema, or the call of a certain tool: a document that the
 * schema allows. Undefined if it demands neither, or cannot be read.
 */
export function formAnswer(wire: WireDescriptor, body: JsonObject): FormAnswer | undefined {
  const asked = readAsked(wire, body);
  if (!asked) return undefined;
  const { format, toolChoice, tools } = asked;
  if (format) return { text: JSON.stringify(sampleOf(format.schema ?? {})) };
  const wanted = typeof toolChoice === 'object' ? toolChoice.tool : undefined;
  const tool = tools.find(({ name }) => name === wanted);
  if (!tool) return undefined;
  return { calls: [{ tool: tool.name, arguments: sampleOf(tool.parameters) as JsonObject }] };
}

function readAsked(wire: WireDescriptor, body: JsonObject) {
  try {
    return wire.translation.readRequest(body, new Losses('lenient', 'a scripted model'));
  } catch {
    return undefined;
  }
}

/**
 * A document that a JSON Schema allows, as the model of a dry run returns it: the largest allowed numbers,
 * the first of several choices, and all required members. Ignores keywords that it does not know.
 */
export function sampleOf(schema: unknown, level = 0): unknown {
  if (!isObject(schema) || level > modelRequests.count.schemaLevels) return null;
  if ('const' in schema) return schema.const;
  if ('default' in schema) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const [choice] = [schema.anyOf, schema.oneOf].filter(Array.isArray).flat();
  if (choice !== undefined) return sampleOf(choice, level + 1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case 'object':
      return objectOf(schema, level);
    case 'array': {
      const least =
        typeof schema.minItems === 'number' ? Math.min(schema.minItems, modelRequests.count.schemaLevels) : 0;
      return Array.from({ length: least }, () => sampleOf(schema.items, level + 1));
    }
    case 'number':
    case 'integer': {
      const { maximum, minimum } = schema;
      return typeof maximum === 'number' ? maximum : typeof minimum === 'number' ? minimum : 1;
    }
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return isObject(schema.properties) ? objectOf(schema, level) : 'This is a dry run.';
  }
}

function objectOf(schema: Record<string, unknown>, level: number): Record<string, unknown> {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const names = Object.keys(properties).filter((name) => required.includes(name));
  return Object.fromEntries(names.map((name) => [name, sampleOf(properties[name], level + 1)]));
}
