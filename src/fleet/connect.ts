import { hostname } from 'node:os';
import { Client, Connection } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import { fleetMessages } from '../bounds/fleet.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { FleetConfig } from '../suite/fleet-config.ts';
import { encryptingCodec } from './codec.ts';
import { type FleetTls, tlsOf, tlsTrouble } from './tls.ts';

/** A connection to the Temporal server of a fleet. */
export interface FleetConnection extends AsyncDisposable {
  client: Client;
  connection: Connection;
  fleet: FleetConfig;
  /** What a worker's own connection needs. */
  options: { address: string; tls: FleetTls; apiKey: string | undefined };
  dataConverter: DataConverter;
}

/** Throws `FLEET_UNREACHABLE`, and `input` errors for keys and files that are missing or wrong. */
export async function connectFleet(
  fleet: FleetConfig,
  env: NodeJS.ProcessEnv,
  /** How the server names this process to others. */
  identity = `${hostname()}/${process.pid}`,
): Promise<FleetConnection> {
  const connectTimeout = fleetMessages.time.connect;
  const { address, namespace, codecKeyEnv, apiKeyEnv } = fleet;
  const dataConverter: DataConverter = {
    payloadCodecs: codecKeyEnv === undefined ? [] : [encryptingCodec(keyIn(codecKeyEnv, env))],
  };
  const apiKey = apiKeyEnv === undefined ? undefined : keyIn(apiKeyEnv, env);
  const options = { address, tls: tlsOf(fleet, apiKey), apiKey };
  try {
    const connection = await Connection.connect({ ...withoutUndefined(options), connectTimeout });
    const client = new Client({ connection, namespace, dataConverter, identity });
    return {
      ...{ client, connection, fleet, options, dataConverter },
      [Symbol.asyncDispose]: () => connection.close(),
    };
  } catch (error) {
    const waited = /connect(ion)? time ?out|deadline/i.test(messageOf(error))
      ? `no answer within ${connectTimeout / 1000} s`
      : messageOf(error);
    const reason = (await tlsTrouble(address, options.tls)) ?? waited;
    throw new OffsiteError(`cannot reach the Temporal server at ${address}: ${reason}`, {
      code: 'FLEET_UNREACHABLE',
      kind: 'infrastructure',
      hint: 'Check that it runs, and fleet.address, fleet.tls and fleet.apiKeyEnv of offsite.yaml.',
      cause: error,
    });
  }
}

/** An object without the fields that are undefined. */
export function withoutUndefined<Given extends object>(given: Given): Partial<Given> {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as Partial<Given>;
}

function keyIn(name: string, env: NodeJS.ProcessEnv): string {
  const value = env[name];
  if (value) return value;
  throw new OffsiteError(`the fleet needs a key, and ${name} is not set`, {
    code: 'FLEET_KEY_MISSING',
    kind: 'input',
    hint: `Set ${name}, or name another variable in fleet of offsite.yaml.`,
  });
}
