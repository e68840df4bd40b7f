import { type IncomingHttpHeaders, type IncomingMessage, request as overHttp } from 'node:http';
import { request as overTls } from 'node:https';
import type { Duplex } from 'node:stream';
import { bytesOf, documentOf, refusal } from '../docker/bounded-answer.ts';
import type { DockerClient } from '../docker/client.ts';

/**
 * Sends a request without a body, and resolves with its connection once the engine has upgraded it. dockerode
 * always sends a body, which Podman would give to the program as input.
 */
export function hijack(client: DockerClient, path: string, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const headers = { Connection: 'Upgrade', Upgrade: 'tcp', 'Content-Length': 0 };
    const request = open(client, 'POST', path, headers, signal);
    request.on('upgrade', (_, socket, head) => {
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.on('response', (answer) => refused(answer).then(reject, reject));
    request.on('error', reject);
    request.end();
  });
}

/** The status and headers of an answer. dockerode drops the headers if the status is an error. */
export function head(
  client: DockerClient,
  path: string,
  signal: AbortSignal,
): Promise<{ status: number; headers: IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const request = open(client, 'HEAD', path, {}, signal);
    request.on('response', (answer) => {
      // Even an answer without a body holds its connection until it is read.
      answer.resume();
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers });
    });
    request.on('error', reject);
    request.end();
  });
}

function open(
  { address, apiVersion, agent }: DockerClient,
  method: string,
  path: string,
  headers: Record<string, string | number>,
  signal: AbortSignal,
) {
  const options = {
    ...(address.kind === 'socket'
      ? { socketPath: address.path }
      : { host: address.host, port: address.port }),
    ...(address.kind === 'https' && address.tls),
    method,
    path: `/v${apiVersion}${path}`,
    headers,
    agent,
    signal,
  };
  return (address.kind === 'https' ? overTls : overHttp)(options);
}

async function refused(answer: IncomingMessage): Promise<Error> {
  return refusal(answer.statusCode ?? 0, documentOf(await bytesOf(answer)));
}
