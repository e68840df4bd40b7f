import { z } from 'zod';
import * as catalog from './catalog.ts';
import * as definition from './definition.ts';
import type { ErrorStatus } from './errors.ts';
import * as failures from './errors.ts';
import { type OperationName, operations } from './operations.ts';
import * as record from './record.ts';
import * as report from './report.ts';
import * as validation from './validation.ts';

/** The schemas that the document defines once and refers to by name. Those of operations have other names. */
const named = [catalog, definition, failures, record, report, validation]
  .flatMap((module) => Object.entries<unknown>(module))
  .flatMap(([id, schema]) => {
    const isShape =
      schema instanceof z.ZodObject || schema instanceof z.ZodUnion || schema instanceof z.ZodEnum;
    return isShape && !/(Request|Response)$/.test(id) ? [{ id, schema }] : [];
  });

/**
 * The OpenAPI 3.1 document of the contract, as a plain value. It is made only from the table of operations.
 */
export function openApiDocument() {
  const schemas = componentSchemas();
  const names = Object.keys(operations) as OperationName[];
  return {
    openapi: '3.1.0',
    info: {
      title: 'Eval Service',
      version: '1.0.0',
      description: [
        'The Eval Service as Offsite implements it. Every operation is a POST with a JSON body.',
        'Operations with `x-offsite-addition` are additions of Offsite that the specification does not have.',
        'Any operation may also answer 405 (a method other than POST), 408 (a request that is too slow),',
        '413 (a body larger than 8 MiB, or 256 KiB for an operation that only reads), 415 (not application/json),',
        '429 (too many requests of the key in flight) and 431 (headers too large),',
        'with a body of the form of ErrorBody.',
      ].join('\n'),
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    paths: Object.fromEntries(names.map((name) => [`/v1/${name}`, { post: operationOf(name) }])),
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' } },
      schemas,
    },
  };
}

function operationOf(name: OperationName) {
  const operation = operations[name];
  const { summary, permission, errors } = operation;
  const file = 'file' in operation ? operation.file : undefined;
  const statuses = [...new Set<ErrorStatus>([...errors, 401, 500])].sort();
  return {
    operationId: name,
    summary,
    description: [
      permission ? `Needs the permission \`${permission}\`.` : 'Any active key is accepted.',
      ...(file ? [`A file as the body needs \`${file.permission}\`.`] : []),
    ].join(' '),
    ...('ours' in operation && { 'x-offsite-addition': true }),
    requestBody: {
      required: !('bodyOptional' in operation),
      content: {
        'application/json': { schema: reference(`${name}.request`) },
        ...Object.fromEntries((file?.types ?? []).map((type) => [type, {}])),
      },
    },
    responses: {
      200: {
        description: 'Success',
        content: { 'application/json': { schema: reference(`${name}.response`) } },
      },
      ...Object.fromEntries(statuses.map((status) => [status, errorResponse(status)])),
    },
  };
}

function errorResponse(status: ErrorStatus) {
  return {
    description: failures.errorTags[status],
    ...(status === 401 && {
      headers: {
        'WWW-Authenticate': { description: 'Says where to authenticate.', schema: { type: 'string' } },
      },
    }),
    content: {
      'application/json': { schema: reference(status === 400 ? 'DecodeErrorBody' : 'ErrorBody') },
    },
  };
}

function componentSchemas(): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  for (const { id, schema } of named) registry.add(schema, { id });
  for (const [name, { request, response }] of Object.entries(operations)) {
    // Clone the schema, because a schema that is named above or shared by two operations already has a name.
    registry.add(request.clone(), { id: `${name}.request` });
    registry.add(response.clone(), { id: `${name}.response` });
  }
  const { schemas } = z.toJSONSchema(registry, {
    target: 'draft-2020-12',
    uri: (id) => `#/components/schemas/${id}`,
  });
  return Object.fromEntries(
    Object.entries(schemas)
      .filter(([id]) => id !== '__shared')
      .map(([id, { $schema, $id, ...schema }]) => [id, schema]),
  );
}

function reference(id: string) {
  return { $ref: `#/components/schemas/${id}` };
}
