// Is an identity provider for tests, or asks a server as a client does that has no token yet.
//
//   node oauth.mjs issuer         prints its URL, ends with its input; POST /token with "claims" sets claims of the
//                                 token, POST /key with "alg" adds a key: tokens are signed with one after the other
//   node oauth.mjs discover URL   prints what the TypeScript SDK reads in the 401 and in the metadata of the server
import { parseArgs } from 'node:util';
import { OAuth2Server } from 'oauth2-mock-server';
import * as sdk from '@modelcontextprotocol/sdk/client/auth.js';

const { positionals: [role, url] } = parseArgs({ allowPositionals: true });

if (role === 'issuer') {
  const server = new OAuth2Server();
  await server.issuer.keys.generate('ES256');
  server.service.on('beforeTokenSigning', (token, req) => {
    Object.assign(token.payload, JSON.parse(req.body.claims ?? '{}'));
  });
  server.service.addRoute('POST', '/key', async (req, res) => {
    await server.issuer.keys.generate(req.body.alg);
    res.end();
  });
  await server.start(0, '127.0.0.1');
  console.log(server.issuer.url);
  process.stdin.resume().on('end', () => process.exit(0));
} else {
  const answer = await fetch(url, { method: 'POST' });
  const asked = sdk.extractWWWAuthenticateParams(answer);
  const resource = await sdk.discoverOAuthProtectedResourceMetadata(url);
  const issuer = await sdk.discoverAuthorizationServerMetadata(resource.authorization_servers[0]);
  console.log(JSON.stringify({ status: answer.status, asked, resource, issuer: issuer.issuer }));
}
