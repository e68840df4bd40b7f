// For serve.test.ts, in a separate process: in a test's process, memory that Node frees too early is rarely
// overwritten. `node asking-many.ts [with-length]` has 2,500 requests answered over 50 connections, and
// prints how many of the answers are whole.
import { connect } from 'node:http2';
import { duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { serveRelay } from '../../../src/gateway/relay/serve.ts';

const body = Buffer.alloc(200, 'x');
const withLength = process.argv[2] === 'with-length';
const headers = {
  'content-type': 'text/plain',
  ...(withLength && { 'content-length': body.length }),
};
const end = withLength ? 'xxx' : '0\r\n\r\n';
const question = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}';

const [inside, outside] = duplexPair();
serveRelay(outside, {
  async request(request, response) {
    await text(request);
    response.writeHead(200, headers).write(body);
    // As after the last piece of a model's answer.
    await null;
    response.end();
  },
  connect: (_request, client) => client.destroy(),
});
const http2 = connect('http://gateway', { createConnection: () => inside });
const counts = await Promise.all(Array.from({ length: 50 }, converse));
console.log(counts.reduce((sum, count) => sum + count, 0));
process.exit();

/** How many of 50 answers on one connection are whole. */
async function converse(): Promise<number> {
  const client = http2.request({ ':method': 'CONNECT', ':authority': 'gateway' }, { endStream: false });
  let answers = 0;
  let whole = 0;
  let answer = '';
  client.write(question);
  for await (const chunk of client) {
    answer += chunk.toString('latin1');
    if (!answer.endsWith(end)) continue;
    answers += 1;
    if (/^HTTP\/1.1 200 OK\r\n[ -~\r\n]+x{200}[\r\n0]*$/.test(answer)) whole += 1;
    if (answers === 50) break;
    answer = '';
    client.write(question);
  }
  return whole;
}
